"""Snapshot, restore, fork and difference of control planes."""

import orjson
import pytest
from fake_kubelet import FakeKubelets, cluster, deployment
from hypothesis import given, settings
from hypothesis import strategies as st

from itbench.kube.client import ApiError
from itbench.kube.plane import ControlPlane
from itbench.kube.snapshots import ABSENT, BOOKKEEPING, PathChange, compare, diff, differences, render


def contents(plane: ControlPlane) -> bytes:
    return orjson.dumps(plane.snapshot().objects(), option=orjson.OPT_SORT_KEYS)


def work(plane: ControlPlane) -> None:
    """A rollout, a deletion and the time they need."""
    k = FakeKubelets(plane)
    k.position = -1
    k.client.patch("deployments.apps", "web", "default", {"spec": {"replicas": 4}})
    k.client.delete("configmaps", "kept", "default")
    k.client.create("deployments.apps", deployment("late", 2))
    k.advance(plane.now + 20.0)


@pytest.fixture
def site() -> FakeKubelets:
    k = cluster(nodes=2)
    k.client.create("deployments.apps", deployment("web", 2))
    k.client.create(
        "configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "default"}}
    )
    k.plane.run(k.plane.now)
    k.step()  # a moment in the middle of a rollout
    return k


def test_a_fork_goes_on_exactly_as_the_original(site: FakeKubelets) -> None:
    """Equal work on both gives equal objects, revisions, names and uids."""
    fork = ControlPlane.fork(site.plane.snapshot())
    assert (fork.now, fork.revision, contents(fork)) == (site.plane.now, site.plane.revision, contents(site.plane))
    work(site.plane)
    work(fork)
    assert fork.revision == site.plane.revision
    assert contents(fork) == contents(site.plane)
    assert fork.defects == []


def test_a_fork_and_its_original_do_not_notice_each_other(site: FakeKubelets) -> None:
    """What is done to one changes neither the other nor the snapshot, nor a second fork of it."""
    state = site.plane.snapshot()
    before = contents(site.plane)
    work(ControlPlane.fork(state))
    assert contents(site.plane) == before == contents(ControlPlane.fork(state))
    first, second = ControlPlane.fork(state), ControlPlane.fork(state)
    work(first)
    work(second)
    assert contents(first) == contents(second) != before


def test_a_fork_shares_objects_with_its_original(site: FakeKubelets) -> None:
    """No object is copied: entries are the same ones, so a difference of the two looks into nothing."""
    state = site.plane.snapshot()
    fork = ControlPlane.fork(state)
    pairs = [
        (entry, fork.store.get(name, entry.namespace, entry.name))
        for name in site.plane.store.resources()
        for entry in site.plane.store.list(name)
    ]
    assert len(pairs) > 100 and all(mine is theirs for mine, theirs in pairs)
    assert diff(state, fork.snapshot()) == []


def test_restore_brings_a_plane_in_use_back(site: FakeKubelets) -> None:
    """Objects, time, audit log and controllers go back; a client made before goes on; what follows is what would have been."""
    user = site.plane.client("kubectl", "ann", ("system:masters",))
    user.get("configmaps", "kept", "default")
    state, revision = site.plane.snapshot(), site.plane.revision
    work(site.plane)
    user.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}})
    last = site.plane.revision
    site.plane.restore(state)
    assert diff(state, site.plane.snapshot()) == []
    assert (site.plane.now, len(site.plane.audit)) == (state.now, len(state.audit))
    assert site.plane.revision > last > revision
    assert user.get("configmaps", "kept", "default")["metadata"]["name"] == "kept"
    fork = ControlPlane.fork(state)
    work(site.plane)
    work(fork)
    ignore = {*BOOKKEEPING, ("involvedObject", "resourceVersion")}
    assert diff(fork.snapshot(), site.plane.snapshot(), ignore=ignore) == []
    assert site.plane.defects == []


def test_who_followed_a_restored_plane_lists_again(site: FakeKubelets) -> None:
    """A position from before is expired, never silently wrong, also one at the snapshot's own revision."""
    state = site.plane.snapshot()
    work(site.plane)
    last = site.plane.revision
    site.plane.restore(state)
    for position in (state.revision, last):
        with pytest.raises(ApiError) as error:
            site.client.changes(position, ["pods"])
        assert error.value.code == 410
    changes, _ = site.client.changes(-1, ["pods"])
    assert {c.object["metadata"]["name"] for c in changes} == {p["metadata"]["name"] for p in site.client.list("pods")}


def test_diff_names_what_changed_with_both_values(site: FakeKubelets) -> None:
    """Added, removed, changed and replaced objects, in a stable order, with paths and values."""
    before = site.plane.snapshot()
    client = site.plane.client("kubectl")
    client.create("secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}})
    client.delete("configmaps", "kept", "default")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "default"}}
    client.create("configmaps", body)
    client.delete("serviceaccounts", "default", "kube-public")
    patch = {
        "metadata": {"labels": {"a.b/c": "d"}},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "app:2"}]}}},
    }
    client.patch("deployments.apps", "web", "default", patch, kind="strategic")
    after = site.plane.snapshot()
    rows = diff(before, after)
    assert [(row.kind, row.entity) for row in rows] == [
        ("replaced", "configmaps/default/kept"),
        ("changed", "deployments.apps/default/web"),
        ("added", "secrets/default/s"),
        ("removed", "serviceaccounts/kube-public/default"),
    ]
    found = {str(path): (path.before, path.after) for path in rows[1].paths}
    assert found == {
        "metadata.generation": (1, 2),
        "metadata.labels": (ABSENT, {"a.b/c": "d"}),
        "spec.template.spec.containers[name=c].image": ("app:1", "app:2"),
    }
    assert [str(path) for path in rows[0].paths] == ["metadata.uid"]
    assert compare(before.objects(), after.objects()) == rows
    every = {str(path) for row in diff(before, after, ignore=()) for path in row.paths}
    assert "metadata.resourceVersion" in every
    back = diff(after, before)
    assert [(r.kind, r.entity) for r in back if r.kind in ("added", "removed")] == [
        ("removed", "secrets/default/s"),
        ("added", "serviceaccounts/kube-public/default"),
    ]


def test_values_that_python_takes_for_equal_differ() -> None:
    """True is not 1, an absent field is not null, and order matters where it means something."""
    assert list(differences({"a": True}, {"a": 1})) == [PathChange(("a",), True, 1)]
    assert list(differences({"a": None}, {})) == [PathChange(("a",), None, ABSENT)]
    swapped = list(differences([{"name": "a"}, {"name": "b"}], [{"name": "b"}, {"name": "a"}]))
    assert [str(path) for path in swapped] == ["[0].name", "[1].name"]
    grown = list(differences([{"name": "a"}, {"name": "b"}], [{"name": "b"}]))
    assert grown == [PathChange(("name=a",), {"name": "a"}, ABSENT)]
    assert render(("metadata", "labels", "a.b/c", 0)) == "metadata.labels[a.b/c][0]"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "type", "x"]), inner, max_size=3)
        | st.lists(st.fixed_dictionaries({"name": st.sampled_from("abc"), "x": inner}), max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(JSON, JSON)
def test_differences_are_empty_only_between_equal_values_and_mirror_each_other(old: object, new: object) -> None:
    """No difference means the same bytes; from the other side the same paths come with the values swapped."""
    there, back = list(differences(old, new)), list(differences(new, old))
    equal = orjson.dumps(old, option=orjson.OPT_SORT_KEYS) == orjson.dumps(new, option=orjson.OPT_SORT_KEYS)
    assert (not there) == equal
    assert [(row.path, row.after, row.before) for row in back] == [(row.path, row.before, row.after) for row in there]
