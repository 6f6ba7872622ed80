"""Whatever people do in whatever order: what a cluster promises at every moment, and at rest."""

from collections.abc import Callable
from typing import Any

from fake_kubelet import FakeKubelets, Obj, cluster, deployment
from hypothesis import given, settings
from hypothesis import strategies as st

from itbench.kube.client import ApiError
from itbench.kube.quantity import parse_quantity
from itbench.kube.registry import Registry
from itbench.kube.requests import ListQuery
from itbench.kube.snapshots import differences
from itbench.kube.store import Store

SPACE = "default"
OWNED = ("pods", "replicasets.apps", "controllerrevisions.apps", "jobs.batch")
OWNERS = (
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
    "cronjobs.batch",
)
ALLOWED = {403, 404, 409, 422, 429}
"""A refusal is an answer; anything else is a fault."""

names = st.sampled_from("ab")
few = st.integers(0, 4)


def pod_spec(image: str, cpu: str = "100m") -> Obj:
    return {"containers": [{"name": "c", "image": image, "resources": {"requests": {"cpu": cpu}}}]}


def workload(kind: str, name: str, number: int, image: str) -> tuple[str, Obj]:
    labels = {"app": f"{kind}-{name}"}
    meta: Obj = {"name": f"{kind}-{name}", "namespace": SPACE}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(image)}
    if kind == "job":
        spec: Obj = {"completions": number, "parallelism": 2, "template": template}
        template["spec"]["restartPolicy"] = "Never"
        return "jobs.batch", {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}
    if kind == "deployment":
        body = deployment(f"{kind}-{name}", number, image)
        body["spec"]["template"]["spec"] = pod_spec(image)
        return "deployments.apps", body
    spec = {"selector": {"matchLabels": labels}, "template": template}
    if kind == "statefulset":
        spec |= {"replicas": number, "serviceName": "none"}
    proper = {"statefulset": "StatefulSet", "daemonset": "DaemonSet"}[kind]
    return f"{kind}s.apps", {"apiVersion": "apps/v1", "kind": proper, "metadata": meta, "spec": spec}


kinds = st.sampled_from(["deployment", "deployment", "statefulset", "daemonset", "job"])
images = st.sampled_from(["app:1", "app:2", "slow:3"])


def create(k: FakeKubelets, kind: str, name: str, number: int, image: str) -> None:
    resource, body = workload(kind, name, number, image)
    k.client.create(resource, body)


def apply(k: FakeKubelets, kind: str, name: str, number: int, image: str) -> None:
    resource, body = workload(kind, name, number, image)
    k.client.patch(resource, body["metadata"]["name"], SPACE, body, kind="apply")


def update(k: FakeKubelets, kind: str, name: str, number: int, image: str) -> None:
    resource, body = workload(kind, name, number, image)
    found = k.client.get(resource, body["metadata"]["name"], SPACE)
    found["metadata"].setdefault("labels", {})["n"] = str(number)
    found["spec"]["template"]["spec"]["containers"][0]["image"] = image
    k.client.update(resource, found)


def scale(k: FakeKubelets, kind: str, name: str, number: int, image: str) -> None:
    resource, body = workload(kind, name, number, image)
    patch = {"spec": {"replicas": number}}
    k.client.patch(resource, body["metadata"]["name"], SPACE, patch, subresource="scale")


def delete(k: FakeKubelets, kind: str, name: str, number: int, image: str) -> None:
    resource, body = workload(kind, name, number, image)
    how: Any = ("Background", "Foreground", "Orphan", "Background", "Foreground")[number]
    k.client.delete(resource, body["metadata"]["name"], SPACE, propagation=how)


def kill(k: FakeKubelets, kind: str, name: str, number: int, image: str) -> None:
    pods = k.client.list("pods", SPACE)
    if pods:
        victim = pods[number % len(pods)]["metadata"]["name"]
        k.client.delete("pods", victim, SPACE, grace_s=number % 2)


def evict(k: FakeKubelets, kind: str, name: str, number: int, image: str) -> None:
    pods = k.client.list("pods", SPACE)
    if pods:
        k.client.evict(pods[number % len(pods)]["metadata"]["name"], SPACE)


def budget(k: FakeKubelets, kind: str, name: str, number: int, image: str) -> None:
    meta = {"name": name, "namespace": SPACE}
    spec = {"minAvailable": number, "selector": {"matchLabels": {"app": f"{kind}-{name}"}}}
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec}
    k.client.patch("poddisruptionbudgets.policy", name, SPACE, body, kind="apply")


def quota(k: FakeKubelets, kind: str, name: str, number: int, image: str) -> None:
    hard = {"pods": str(number + 3), "requests.cpu": "900m", "count/jobs.batch": "1"}
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": SPACE}}
    k.client.patch("resourcequotas", "q", SPACE, {**body, "spec": {"hard": hard}}, kind="apply")


def work(k: FakeKubelets, kind: str, name: str, number: int, image: str) -> None:
    k.plane.run(k.plane.now)
    k.step()


def wait(k: FakeKubelets, kind: str, name: str, number: int, image: str) -> None:
    k.advance(k.plane.now + 4.0**number)


Move = Callable[[FakeKubelets, str, str, int, str], None]
MOVES: tuple[Move, ...] = (
    create,
    create,
    create,
    apply,
    apply,
    update,
    update,
    scale,
    delete,
    kill,
    evict,
    budget,
    quota,
)
moves = st.tuples(st.sampled_from((*MOVES, work, work, work, wait)), kinds, names, few, images)
histories = st.lists(moves, min_size=15, max_size=30)


def verdict(pod: Obj) -> str:
    if any(ref["kind"] == "Job" for ref in pod["metadata"].get("ownerReferences", ())):
        return "done"
    return "running" if pod["spec"]["containers"][0]["image"] == "slow:3" else "ready"


def play(k: FakeKubelets, history: list[Any], after: Callable[[], None]) -> None:
    for move, *rest in history:
        try:
            move(k, *rest)
        except ApiError as error:
            assert error.code in ALLOWED, error
        after()


def revisions_of(k: FakeKubelets) -> dict[str, tuple[int, int]]:
    """By uid of a Deployment: its revision and its generation."""
    key = "deployment.kubernetes.io/revision"
    return {
        d["metadata"]["uid"]: (int(d["metadata"].get("annotations", {}).get(key, 0)), d["metadata"]["generation"])
        for d in k.client.list("deployments.apps")
    }


def check_rest(k: FakeKubelets) -> None:
    """Replicas are what was asked for (as far as quotas let them), owners exist, quota usage is the sum of what is there."""
    uids = {obj["metadata"]["uid"] for resource in OWNERS for obj in k.client.list(resource)}
    owned = [obj for resource in OWNED for obj in k.client.list(resource, SPACE)]
    assert [
        o["metadata"]["name"]
        for o in owned
        for ref in o["metadata"].get("ownerReferences", ())
        if ref["uid"] not in uids
    ] == []
    pods = k.client.list("pods", SPACE)
    live = [pod for pod in pods if pod["status"]["phase"] not in ("Succeeded", "Failed")]
    limited = bool(k.client.list("resourcequotas", SPACE))
    for resource in ("replicasets.apps", "statefulsets.apps"):
        for found in k.client.list(resource, SPACE):
            mine = [
                pod
                for pod in live
                if any(ref["uid"] == found["metadata"]["uid"] for ref in pod["metadata"].get("ownerReferences", ()))
            ]
            assert found["status"].get("replicas", 0) == len(mine) <= found["spec"]["replicas"]
            slow = found["spec"]["template"]["spec"]["containers"][0]["image"] == "slow:3"
            if not limited and not (slow and resource == "statefulsets.apps"):
                assert len(mine) == found["spec"]["replicas"] or _rolling(k, found)
    for found in k.client.list("resourcequotas", SPACE):
        used = found["status"]["used"]
        assert used["pods"] == str(len(live))
        assert parse_quantity(used["requests.cpu"]) == sum(
            (parse_quantity(p["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for p in live),
            parse_quantity("0"),
        )
        assert used["count/jobs.batch"] == str(len(k.client.list("jobs.batch", SPACE)))


def _rolling(k: FakeKubelets, found: Obj) -> bool:
    """Whether pods that never get ready may hold up an ordered roll-out."""
    return found["kind"] == "StatefulSet" and found["status"].get("updateRevision") != found["status"].get(
        "currentRevision"
    )


@settings(max_examples=20, deadline=None, derandomize=True)
@given(histories)
def test_any_history_keeps_what_a_cluster_promises(history: list[Any]) -> None:
    """Revisions only rise; at rest owners exist, replicas are right and quotas count right; the log replays to the list."""
    k = cluster(nodes=2, verdict=verdict)
    start, seen, last = k.plane.snapshot(), revisions_of(k), [k.plane.revision]

    def after() -> None:
        now = revisions_of(k)
        for uid, (revision, generation) in seen.items():
            assert uid not in now or (now[uid][0] >= revision and now[uid][1] >= generation)
        seen.update(now)
        assert k.plane.revision >= last[0]
        last[0] = k.plane.revision
        assert k.plane.defects == []

    play(k, history, after)
    k.advance(k.plane.now + 60.0)
    after()
    check_rest(k)
    check_log(k.plane.store, start.revision)


def check_log(store: Store, since: int) -> None:
    """Revisions in the log rise one by one; replayed from any list on they give the next one."""
    records = store.since(since)
    assert [record.revision for record in records] == list(range(since + 1, store.revision + 1))
    assert all(record.entry.object["metadata"]["resourceVersion"] == str(record.revision) for record in records)
    for resource in ("pods", "deployments.apps", "events"):
        for position in range(since, store.revision, max(1, (store.revision - since) // 7)):
            known = {entry.name: entry for entry in store.list_at(resource, SPACE, position)}
            for record in store.since(position, {resource}):
                if record.entry.namespace != SPACE:
                    continue
                assert known.get(record.entry.name) is record.previous
                if record.type == "DELETED":
                    del known[record.entry.name]
                else:
                    known[record.entry.name] = record.entry
            assert [known[name] for name in sorted(known)] == store.list(resource, SPACE)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.sampled_from("cud"), st.integers(0, 15)), max_size=60), st.integers(1, 5), st.integers(1, 9)
)
def test_a_list_in_chunks_is_the_list_of_its_beginning(writes: list[Any], limit: int, pace: int) -> None:
    """Whatever is written between the chunks: together they are exactly the first moment's list, nothing lost, nothing twice."""
    k = cluster(nodes=0)
    registry: Registry = k.plane.registry
    resource = registry.table.named("configmaps")
    for number in range(0, 16, 2):
        k.client.create("configmaps", _map(number, "start"))
    steps = iter(writes)
    wanted = [entry.object for entry in registry.list(resource, SPACE).entries]
    page = registry.list(resource, SPACE, ListQuery(limit=limit))
    first, found, remaining = page.revision, [entry.object for entry in page.entries], page.remaining
    while page.token:
        for how, number in [step for step, _ in zip(steps, range(pace))]:
            _write(k, how, number)
        page = registry.list(resource, SPACE, ListQuery(limit=limit, token=page.token))
        assert page.revision == first
        found += [entry.object for entry in page.entries]
        assert page.remaining == max(0, len(wanted) - len(found))
    assert remaining == max(0, len(wanted) - limit)
    assert list(differences(wanted, found)) == []


def _map(number: int, value: str) -> Obj:
    meta = {"name": f"m{number:02}", "namespace": SPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"v": value}}


def _write(k: FakeKubelets, how: str, number: int) -> None:
    try:
        if how == "c":
            k.client.create("configmaps", _map(number, "new"))
        elif how == "u":
            k.client.patch("configmaps", f"m{number:02}", SPACE, {"data": {"v": "changed"}})
        else:
            k.client.delete("configmaps", f"m{number:02}", SPACE)
    except ApiError as error:
        assert error.code in (404, 409), error
