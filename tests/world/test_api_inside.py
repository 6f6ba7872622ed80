"""Programs in containers reach the API server with their account's token; what they may not do is refused and audited."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from itbench.kube.api import Server, serve
from itbench.kube.tls import unverified_claims, verified_claims
from itbench.world.estate import World
from itbench.world.pace import WorldPacer

AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.56"
MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
CURL = f'curl -sk -H "Authorization: Bearer $(cat {MOUNT}/token)"'
Shell = Callable[[str], str]


def _pod(name: str, *args: str, volumes: list | None = None, mounts: list | None = None) -> dict[str, Any]:
    container = {"name": "c", "image": AGNHOST, "args": list(args) or ["pause"], "volumeMounts": mounts or []}
    spec = {"containers": [container], "volumes": volumes or [], "restartPolicy": "Never"}
    return {"metadata": {"name": name, "labels": {"a": "b", "c": "d"}}, "spec": spec}


@pytest.fixture
async def served() -> AsyncIterator[tuple[World, Server]]:
    """A world with an API server in front of it."""
    world = World.create(None, seed=1, nodes=1)
    world.settle()
    server = await serve(world.planes["main"], WorldPacer(world, mode="stepped"), world.door())
    yield world, server
    await server.close()


@pytest.fixture
def shell(served: Any) -> Shell:
    """A pod with the account `default`, and a shell in it."""
    world, _ = served
    token = {"serviceAccountToken": {"path": "vault", "audience": "vault", "expirationSeconds": 600}}
    labels = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    volumes = [
        {"name": "t", "projected": {"sources": [token]}},
        {"name": "d", "downwardAPI": {"items": [labels]}},
    ]
    mounts = [{"name": "t", "mountPath": "/t"}, {"name": "d", "mountPath": "/d"}]
    world.planes["main"].client("kubectl").create("pods", _pod("p", volumes=volumes, mounts=mounts), "default")
    world.settle()

    def run(line: str) -> str:
        session = world.door().exec("default", "p", "c", ["sh", "-c", line])
        out = b"".join(data for _, data in session.read()).decode()
        while session.exit_code is None:
            world.advance(session.due)
            out += b"".join(data for _, data in session.read()).decode()
        return f"{out}[{session.exit_code}]" if session.exit_code else out

    return run


def _logs(world: World, name: str) -> str:
    from itbench.kube.door import LogQuery

    return "\n".join(line for _, line in world.door().logs(LogQuery("default", name, "c")))


async def test_a_pod_asks_the_api_with_its_own_account(served: Any, shell: Shell) -> None:
    """Anonymous is refused, the account is who it is, what it may do is RBAC's, and the audit log knows."""
    world, _ = served
    refused = json.loads(shell("curl -sk https://kubernetes.default.svc/api"))
    assert refused["message"] == 'forbidden: User "system:anonymous" cannot get path "/api"'
    pods = "https://$KUBERNETES_SERVICE_HOST/api/v1/namespaces/default/pods"
    who = "system:serviceaccount:default:default"
    assert f'User \\"{who}\\" cannot list resource \\"pods\\"' in shell(f"{CURL} {pods}")
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "delete"]}]
    client = world.planes["main"].client("kubectl")
    client.create("roles.rbac.authorization.k8s.io", {"metadata": {"name": "r"}, "rules": rules}, "default")
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    binding = {"metadata": {"name": "r"}, "subjects": [subject], "roleRef": role}
    client.create("rolebindings.rbac.authorization.k8s.io", binding, "default")
    listed = json.loads(shell(f"{CURL} {pods}"))
    assert [item["metadata"]["name"] for item in listed["items"]] == ["p"]
    rows = [(row.user, row.verb, row.code) for row in world.planes["main"].audit if row.user == who]
    assert rows == [(who, "list", 403), (who, "list", 200)]


async def test_what_waits_is_not_answered_inside(shell: Shell) -> None:
    """A watch would have to let time pass in the middle of a step."""
    assert shell(f"{CURL} -m 2 'https://kubernetes.default/api/v1/pods?watch=true'") == "[28]"


async def test_curl_wants_to_trust_the_server(shell: Shell) -> None:
    """Without -k an unknown authority is an error, with the cluster's bundle it is none."""
    url = "https://kubernetes.default.svc/version"
    assert shell(f"curl -sS {url}").startswith("curl: (60) SSL certificate problem")
    assert '"gitVersion"' in shell(
        f'curl -s --cacert {MOUNT}/ca.crt -H "Authorization: Bearer $(cat {MOUNT}/token)" {url}'
    )
    assert "[77]" in shell(f"curl -s --cacert /nope {url}")


async def test_an_egress_policy_closes_the_way_to_the_api(served: Any, shell: Shell) -> None:
    """A policy for the pod without a rule for the server's address denies; selectors of namespaces do not find it."""
    world, _ = served
    client = world.planes["main"].client("kubectl")
    spec = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": [{"namespaceSelector": {}}]}]}
    client.create("networkpolicies.networking.k8s.io", {"metadata": {"name": "n"}, "spec": spec}, "default")
    world.settle()
    assert shell("curl -sk -m 1 https://kubernetes.default/version") == "[28]"
    block = {"spec": {"egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/24"}}], "ports": [{"port": 6443}]}]}}
    client.patch("networkpolicies.networking.k8s.io", "n", "default", block)
    world.settle()
    assert '"gitVersion"' in shell("curl -sk https://kubernetes.default/version")


async def test_token_files_hold_tokens_that_the_server_signed(served: Any, shell: Shell) -> None:
    """Of the account, bound to pod and node, for the audience asked for; kept until it is renewed; checked by published keys."""
    world, server = served
    token = shell(f"cat {MOUNT}/token")
    assert token == shell(f"cat {MOUNT}/token")
    key = json.loads(shell(f"{CURL} https://kubernetes.default.svc.cluster.local/openid/v1/jwks"))["keys"][0]
    claims = verified_claims(token, key)
    assert claims is not None
    bound = claims["kubernetes.io"]
    pod = world.planes["main"].client("kubectl").get("pods", "p", "default")
    assert bound["pod"] == {"name": "p", "uid": pod["metadata"]["uid"]}
    assert (bound["node"]["name"], bound["serviceaccount"]["name"]) == ("node-1", "default")
    assert bound["warnafter"] - claims["iat"] == 3607
    assert claims["exp"] - claims["iat"] == 365 * 86400
    user = server.door.tokens.user(token)
    assert user is not None and user.name == "system:serviceaccount:default:default"
    other = verified_claims(shell("cat /t/vault"), key)
    assert other is not None and (other["aud"], other["exp"] - other["iat"]) == (["vault"], 600)
    assert verified_claims(token[:-8] + "AAAAAAAA", key) is None
    assert unverified_claims("a.b") is None


async def test_a_saved_world_holds_no_token(served: Any, shell: Shell) -> None:
    """Tokens are made when a file is read."""
    world, _ = served
    head = shell(f"cat {MOUNT}/token").split(".")[0]
    assert head not in json.dumps(world.save(), default=repr)


async def test_labels_come_as_a_file(shell: Shell) -> None:
    """One line each, quoted."""
    assert shell("cat /d/labels") == 'a="b"\nc="d"'


async def test_the_issuer_is_checked_by_what_it_publishes(served: Any) -> None:
    """The test image's program finds configuration and keys from inside, and refuses a token for others."""
    world, _ = served
    client = world.planes["main"].client("kubectl")
    token = {"serviceAccountToken": {"path": "token", "audience": "oidc"}}
    volumes, mounts = [{"name": "t", "projected": {"sources": [token]}}], [{"name": "t", "mountPath": "/t"}]
    word = "test-service-account-issuer-discovery"
    for name, audience in (("good", "oidc"), ("bad", "other")):
        args = (word, "--token-path", "/t/token", "--audience", audience)
        client.create("pods", _pod(name, *args, volumes=volumes, mounts=mounts), "default")
    world.settle()
    world.advance(world.now + 5.0)
    assert client.get("pods", "good", "default")["status"]["phase"] == "Succeeded"
    assert "OK: Validated signature on JWT" in _logs(world, "good")
    assert client.get("pods", "bad", "default")["status"]["phase"] == "Failed"
    assert 'oidc: expected audience "other" got ["oidc"]' in _logs(world, "bad")


async def test_a_program_polls_the_server_and_mounttest_reads_files(served: Any) -> None:
    """inclusterclient asks every 30 s; mounttest prints what a file holds, and fails where there is none."""
    world, _ = served
    client = world.planes["main"].client("kubectl")
    client.create("pods", _pod("poll", "inclusterclient"), "default")
    client.create("pods", _pod("read", "mounttest", f"--file_content={MOUNT}/namespace", "--file_perm=/tmp"), "default")
    client.create("pods", _pod("none", "mounttest", "--file_content=/nope"), "default")
    world.settle()
    world.advance(world.now + 65.0)
    assert _logs(world, "poll").count("calling /healthz") >= 3
    assert "status=failed" not in _logs(world, "poll")
    assert _logs(world, "read") == f'perms of file "/tmp": drwxr-xr-x\ncontent of file "{MOUNT}/namespace": default'
    assert client.get("pods", "read", "default")["status"]["phase"] == "Succeeded"
    assert client.get("pods", "none", "default")["status"]["phase"] == "Failed"
