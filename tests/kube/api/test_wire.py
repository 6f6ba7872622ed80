"""Headers of every answer: what a real server sends, and nothing that says what really answers."""

from typing import Any

import pytest

from itbench.kube.api.flows import matches
from itbench.kube.api.paths import parse
from itbench.kube.controllers.flowcontrol import LEVELS, SCHEMAS
from itbench.kube.rbac import User

MAPS = "/api/v1/namespaces/default/configmaps"
LOG = "/api/v1/namespaces/default/pods/x/log"
CALLS = [
    ("GET", "/version", None),
    ("GET", "/readyz", None),
    ("GET", "/nosuch", None),
    ("GET", MAPS, None),
    ("GET", f"{MAPS}/nosuch", None),
    ("GET", "/api/v1/nosuch", None),
    ("POST", MAPS, {"metadata": {"name": "x"}}),
    ("POST", MAPS, {"metadata": 1}),
    ("DELETE", "/version", None),
    ("GET", f"{MAPS}?watch=1&timeoutSeconds=1", None),
]


@pytest.mark.parametrize(("method", "path", "body"), CALLS, ids=[f"{m} {p}" for m, p, _ in CALLS])
async def test_answers_name_their_audit_entry_and_flow_and_no_program(
    site: Any, method: str, path: str, body: Any
) -> None:
    """Errors, streams and plain texts too."""
    reply = await site.http(method, path, body)
    again = await site.http(method, path, body, headers={"Audit-ID": "mine"})
    assert "Server" not in reply.headers
    assert reply.headers["Cache-Control"] == "no-cache, private"
    assert len(reply.headers["Audit-Id"]) == 36
    assert again.headers["Audit-Id"] == "mine"
    store = site.plane.registry.store
    for kind, resource in (("Flowschema", SCHEMAS), ("Prioritylevel", LEVELS)):
        uid = store.get(resource, "", "exempt").object["metadata"]["uid"]
        assert reply.headers[f"X-Kubernetes-Pf-{kind}-Uid"] == uid


async def test_the_flow_follows_user_and_schemas(site: Any) -> None:
    """Strangers fall into the general schema until another one takes precedence; connections have none."""
    store = site.plane.registry.store

    async def schema(path: str, user: str) -> str:
        uid = (await site.http("GET", path, user=user)).headers.get("X-Kubernetes-Pf-Flowschema-Uid")
        return next((e.name for e in store.list(SCHEMAS) if e.object["metadata"]["uid"] == uid), "")

    assert await schema(MAPS, "jo") == "global-default"
    assert await schema("/readyz", "jo") == "probes"
    assert await schema("/readyz", "") == "probes"
    assert await schema(LOG, "admin") == ""
    rule = {
        "subjects": [{"kind": "User", "user": {"name": "jo"}}],
        "resourceRules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"]}],
    }
    spec = {"matchingPrecedence": 50, "priorityLevelConfiguration": {"name": "workload-low"}, "rules": [rule]}
    site.plane.client("test").create(SCHEMAS, {"metadata": {"name": "jos"}, "spec": spec})
    assert await schema(MAPS, "jo") == "jos"
    assert await schema(f"{MAPS}/x", "jo") == "global-default"
    assert await schema("/api/v1/configmaps", "jo") == "global-default"
    assert await schema(MAPS, "bo") == "global-default"


@pytest.mark.parametrize(
    ("subject", "user", "expected"),
    [
        ({"kind": "User", "user": {"name": "*"}}, "jo", True),
        ({"kind": "Group", "group": {"name": "staff"}}, "jo", True),
        ({"kind": "Group", "group": {"name": "others"}}, "jo", False),
        (
            {"kind": "ServiceAccount", "serviceAccount": {"namespace": "a", "name": "*"}},
            "system:serviceaccount:a:x",
            True,
        ),
        (
            {"kind": "ServiceAccount", "serviceAccount": {"namespace": "a", "name": "x"}},
            "system:serviceaccount:a:xy",
            False,
        ),
    ],
)
def test_subjects_of_flow_schemas_are_users_groups_and_accounts(subject: Any, user: str, expected: bool) -> None:
    """A rule without a covering part never matches."""
    rule = {"subjects": [subject], "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/a/*"]}]}
    for path, covered in (("/a/b", True), ("/b", False)):
        found = matches({"rules": [rule]}, User(user, ("staff",)), "get", parse(path))
        assert found is (expected and covered)


async def test_only_what_is_asked_for_by_its_hash_may_be_kept(site: Any) -> None:
    """And aggregated discovery."""
    path = (await site.http("GET", "/openapi/v3")).json["paths"]["api/v1"]["serverRelativeURL"]
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    kept = {
        path: "public, immutable",
        path.split("?")[0]: "no-cache, private",
        "/openapi/v2": "no-cache, private",
        "/apis": "public",
    }
    for asked, expected in kept.items():
        reply = await site.http("GET", asked, headers={"Accept": accept if asked == "/apis" else "application/json"})
        assert reply.headers["Cache-Control"] == expected
        assert reply.headers["ETag"]


async def test_a_refusal_by_rbac_must_not_be_sniffed_and_an_unknown_caller_has_no_flow(site: Any) -> None:
    """403 of the authorizer; 401."""
    refused = await site.http("GET", MAPS, user="jo")
    assert (refused.status, refused.headers["X-Content-Type-Options"]) == (403, "nosniff")
    unknown = await site.http("GET", MAPS, headers={"Authorization": "Bearer x"})
    assert unknown.status == 401
    assert not [name for name in unknown.headers if name.startswith("X-Kubernetes")]
    assert len(unknown.headers["Audit-Id"]) == 36
