"""The store: entries, order, change log, snapshots."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itbench.kube import store as store_module
from itbench.kube.store import Expired, Store


def _obj(namespace: str, name: str, value: int = 0) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"v": str(value)},
    }


def _state(store: Store) -> list[tuple[str, str, str]]:
    return [(entry.namespace, entry.name, entry.object["data"]["v"]) for entry in store.list("configmaps")]


STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "remove"]), st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 3)),
    max_size=40,
)


def _play(store: Store, steps: list[tuple[str, str, str, int]]) -> None:
    for action, namespace, name, value in steps:
        if action == "put":
            store.put("configmaps", _obj(namespace, name, value))
        elif store.get("configmaps", namespace, name):
            store.remove("configmaps", namespace, name)


@settings(max_examples=60, deadline=None)
@given(STEPS, STEPS)
def test_replaying_the_log_from_a_list_gives_the_next_list(first: list, second: list) -> None:
    """A watcher that lists and then follows the log knows exactly what a new list would say."""
    store = Store()
    _play(store, first)
    known = {(entry.namespace, entry.name): entry for entry in store.list("configmaps")}
    since = store.revision
    _play(store, second)
    for record in store.since(since, {"configmaps"}):
        key = (record.entry.namespace, record.entry.name)
        assert (record.type == "ADDED") == (key not in known)
        if record.type == "DELETED":
            del known[key]
        else:
            known[key] = record.entry
    assert sorted(known) == [(entry.namespace, entry.name) for entry in store.list("configmaps")]
    assert all(known[entry.namespace, entry.name] is entry for entry in store.list("configmaps"))


@settings(max_examples=40, deadline=None)
@given(STEPS, STEPS)
def test_restore_and_load_give_back_the_state(first: list, second: list) -> None:
    """A snapshot survives later writes, and saved data holds the same objects."""
    store = Store()
    _play(store, first)
    snapshot, saved, before, revision = store.snapshot(), store.save(), _state(store), store.revision
    _play(store, second)
    store.restore(snapshot)
    assert (_state(store), store.revision) == (before, revision)
    loaded = Store.load(saved)
    assert (_state(loaded), loaded.revision) == (before, revision)


def test_revisions_grow_by_one_and_deletes_carry_their_own() -> None:
    """Every change takes the next revision; the last state of a deleted object shows the revision of its end."""
    store = Store()
    assert store.put("configmaps", _obj("a", "x")).revision == 1
    assert store.put("configmaps", _obj("a", "x", 1)).revision == 2
    gone = store.remove("configmaps", "a", "x")
    assert gone.revision == 3
    assert gone.object["metadata"]["resourceVersion"] == "3"
    assert [record.revision for record in store.since(0)] == [1, 2, 3]


def test_a_log_that_was_cut_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for more than the log holds raises Expired with the oldest revision that works."""
    monkeypatch.setattr(store_module, "LOG_LENGTH", 5)
    monkeypatch.setattr(store_module, "_TRIM", 2)
    store = Store()
    for value in range(20):
        store.put("configmaps", _obj("a", "x", value))
    with pytest.raises(Expired) as caught:
        store.since(3)
    assert caught.value.oldest == store.oldest
    assert len(store.since(store.oldest)) == 20 - store.oldest


def test_entries_are_encoded_once_and_copied_deeply() -> None:
    """Bytes are cached; a copy shares nothing with the entry."""
    store = Store()
    entry = store.put("configmaps", _obj("a", "x"))
    assert entry.bytes is entry.bytes
    copied = entry.copy()
    copied["data"]["v"] = "changed"
    assert entry.object["data"]["v"] == "0"
