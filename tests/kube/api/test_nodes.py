"""Kubelets as clients: what the node authorizer and NodeRestriction let them do; every text is that of a real server."""

from typing import Any

import pytest

NODE = {"Impersonate-User": "system:node:node-1", "Impersonate-Group": "system:nodes"}
PODS, CORE = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
NONE = "no relationship found between node 'node-1' and this object"
MERGE = {"Content-Type": "application/merge-patch+json"}


def _pod(name: str, node: str, **more: Any) -> dict[str, Any]:
    meta = {"name": name, **more.pop("meta", {})}
    return {"metadata": meta, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "n"}], **more}}


def _cannot(what: str, verb: str, resource: str, group: str, where: str, why: str) -> str:
    who = 'User "system:node:node-1"'
    text = f'{what} is forbidden: {who} cannot {verb} resource "{resource}" in API group "{group}" {where}'
    return f"{text}: {why}" if why else text


HERE = 'in the namespace "default"'
EVERYWHERE = "at the cluster scope"


@pytest.fixture
async def two(site: Any) -> Any:
    """Two nodes with a pod each; that of node-1 refers to the Secret s1."""
    nodes = (await site.http("GET", "/api/v1/nodes")).json["items"]
    for name in {"node-1", "node-2"} - {row["metadata"]["name"] for row in nodes}:
        await site.http("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    for name in ("s1", "s2"):
        await site.http("POST", f"{CORE}/secrets", {"metadata": {"name": name}})
    uses = [{"name": "c", "image": "n", "envFrom": [{"secretRef": {"name": "s1"}}]}]
    await site.http("POST", PODS, _pod("mine", "node-1", containers=uses))
    await site.http("POST", PODS, _pod("theirs", "node-2"))
    return site


async def _ask(site: Any, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
    answer = await site.http(method, path, body, headers={**NODE, **headers})
    return answer.status, answer.json.get("message", "") if answer.status >= 400 else ""


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (f"{CORE}/secrets/s1", ""),
        (f"{PODS}/mine", ""),
        ("/api/v1/nodes/node-1", ""),
        ("/api/v1/services", ""),
        (f"{CORE}/secrets/s2", _cannot('secrets "s2"', "get", "secrets", "", HERE, NONE)),
        (f"{CORE}/secrets", _cannot("secrets", "list", "secrets", "", HERE, "No Object name found")),
        (
            "/api/v1/nodes",
            _cannot(
                "nodes",
                "list",
                "nodes",
                "",
                EVERYWHERE,
                "node 'node-1' cannot read all nodes, only its own Node object",
            ),
        ),
        (
            "/api/v1/nodes/node-2",
            _cannot(
                *('nodes "node-2"', "get", "nodes", "", EVERYWHERE),
                "node 'node-1' cannot read 'node-2', only its own Node object",
            ),
        ),
        (PODS, _cannot("pods", "list", "pods", "", HERE, "can only list/watch pods with spec.nodeName field selector")),
        (f"{PODS}/theirs", _cannot('pods "theirs"', "get", "pods", "", HERE, NONE)),
        (
            LEASES.format("kube-node-lease") + "/node-2",
            _cannot(
                *('leases.coordination.k8s.io "node-2"', "get", "leases", "coordination.k8s.io"),
                *('in the namespace "kube-node-lease"',),
                "can only access node lease with the same name as the requesting node",
            ),
        ),
    ],
)
async def test_a_node_reads_its_own(two: Any, path: str, text: str) -> None:
    """Its Node, its pods, what they refer to; the rest is refused with the reason."""
    assert await _ask(two, "GET", path) == ((403, text) if text else (200, ""))


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        ({"metadata": {"labels": {"a": "b"}}}, ""),
        ({"metadata": {"labels": {"kubernetes.io/os": "linux"}}}, ""),
        ({"spec": {"unschedulable": True}}, ""),
        (
            {"metadata": {"labels": {"node-restriction.kubernetes.io/a": "b", "kubernetes.io/foo": "b"}}},
            "is not allowed to modify labels: kubernetes.io/foo, node-restriction.kubernetes.io/a",
        ),
        (
            {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
            'node "node-1" is not allowed to modify taints',
        ),
    ],
)
async def test_a_node_changes_little_of_itself(two: Any, patch: dict[str, Any], text: str) -> None:
    """Its own labels, but neither reserved ones nor taints."""
    found = await _ask(two, "PATCH", "/api/v1/nodes/node-1", patch, **MERGE)
    assert found == ((403, f'nodes "node-1" is forbidden: {text}') if text else (200, ""))


async def test_a_node_touches_no_other_nodes_pods(two: Any) -> None:
    """Neither deletes nor evicts them, nor writes their status."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "theirs", "namespace": "default"}}
    head = 'pods "theirs" is forbidden: node'
    assert await _ask(two, "DELETE", f"{PODS}/theirs") == (
        *(403, f'{head} "node-1" can only delete pods with spec.nodeName set to itself'),
    )
    assert await _ask(two, "POST", f"{PODS}/theirs/eviction", eviction) == (
        *(403, f"{head} node-1 can only evict pods with spec.nodeName set to itself"),
    )
    status = {"status": {"message": "x"}}
    assert await _ask(two, "PATCH", f"{PODS}/theirs/status", status, **MERGE) == (
        *(403, f'{head} "node-1" can only update pod status for pods with spec.nodeName set to itself'),
    )
    assert await _ask(two, "PATCH", f"{PODS}/mine/status", status, **MERGE) == (200, "")
    labels = {"metadata": {"labels": {"x": "y"}}}
    found = await _ask(two, "PATCH", f"{PODS}/mine/status", labels, **MERGE)
    assert found[0] in (200, 403)
    assert await _ask(two, "DELETE", f"{PODS}/mine?gracePeriodSeconds=0") == (200, "")


async def test_a_node_creates_mirrors_of_its_own_only(two: Any) -> None:
    """With its owner reference, on itself, without anything that is looked up in the cluster."""
    uid = (await two.http("GET", "/api/v1/nodes/node-1")).json["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": uid, "controller": True}
    mirror = {"annotations": {"kubernetes.io/config.mirror": "a"}}
    meta = {**mirror, "ownerReferences": [owner]}

    async def made(body: dict[str, Any]) -> tuple[int, str]:
        code, text = await _ask(two, "POST", PODS, body)
        return code, text.removeprefix('pods "x" is forbidden: ')

    def volume(**source: Any) -> list[dict[str, Any]]:
        return [{"name": "v", **source}]

    own = 'node "node-1" can only create pods with'
    assert await made(_pod("x", "node-1")) == (
        *(403, 'pod does not have "kubernetes.io/config.mirror" annotation, node "node-1" can only create mirror pods'),
    )
    assert await made(_pod("x", "node-2", meta=meta)) == (403, f"{own} spec.nodeName set to itself")
    assert await made(_pod("x", "node-1", meta=mirror)) == (403, f"{own} an owner reference set to itself")
    assert await made(_pod("x", "node-1", meta=meta, serviceAccountName="default")) == (
        *(403, "a mirror pod may not reference service accounts"),
    )
    secret, config = volume(secret={"secretName": "s1"}), volume(configMap={"name": "c"})
    assert await made(_pod("x", "node-1", meta=meta, volumes=secret)) == (
        *(403, "a mirror pod may not reference secrets"),
    )
    assert await made(_pod("x", "node-1", meta=meta, volumes=config)) == (
        *(403, 'node "node-1" can not create pods that reference configmaps'),
    )
    assert await made(_pod("x", "node-1", meta=meta)) == (201, "")


async def test_leases_and_tokens_are_bound_to_the_node(two: Any) -> None:
    """A lease of its own name; a token only for an account of a pod of its own, bound to it."""
    lease = {"metadata": {"name": "node-9"}}
    assert await _ask(two, "POST", LEASES.format("kube-node-lease"), lease) == (
        403,
        'leases.coordination.k8s.io "node-9" is forbidden: can only access node lease with the same name as the requesting node',
    )
    why = 'can only access leases in the "kube-node-lease" system namespace'
    text = _cannot("leases.coordination.k8s.io", "create", "leases", "coordination.k8s.io", HERE, why)
    assert await _ask(two, "POST", LEASES.format("default"), lease) == (403, text)
    path, head = (
        f"{CORE}/serviceaccounts/default/token",
        'serviceaccounts "default" is forbidden: node requested token ',
    )
    assert await _ask(two, "POST", path, {"spec": {}}) == (403, f"{head}not bound to a pod")
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "mine"}
    found = await _ask(two, "POST", path, {"spec": {"boundObjectRef": bound}})
    assert found == (403, f"{head}with a pod binding without a uid")
    uid = (await two.http("GET", f"{PODS}/mine")).json["metadata"]["uid"]
    assert await _ask(two, "POST", path, {"spec": {"boundObjectRef": {**bound, "uid": uid}}}) == (201, "")
