"""JSON patch, merge patch, strategic merge: laws and known cases of the real server."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itbench.kube import schema
from itbench.kube.client import ApiError
from itbench.kube.patch.jsonpatch import apply_json_patch
from itbench.kube.patch.merge import apply_merge_patch
from itbench.kube.patch.strategic import apply_strategic_patch

JSON = st.recursive(
    st.one_of(st.booleans(), st.integers(-5, 5), st.sampled_from(["", "a", "b"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), JSON, max_size=4)


def _diff(old: Any, new: Any) -> Any:
    """The merge patch between two values (RFC 7386, appendix)."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    out = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old or old[key] != value or type(old[key]) is not type(value):
            out[key] = _diff(old[key], value) if key in old else value
    return out


@settings(max_examples=100, deadline=None)
@given(OBJECTS, OBJECTS)
def test_merge_patch_of_a_difference_gives_the_target(old: dict, new: dict) -> None:
    """Applying the difference leads to the target, and applying it again changes nothing."""
    patch = _diff(old, new)
    once = apply_merge_patch(copy.deepcopy(old), patch)
    assert once == new
    assert apply_merge_patch(copy.deepcopy(once), patch) == once


@settings(max_examples=60, deadline=None)
@given(OBJECTS, st.sampled_from("abcd"), JSON)
def test_json_patch_add_then_remove_is_nothing(document: dict, key: str, value: Any) -> None:
    """Adding a member and removing it leaves the document without it."""
    steps = [{"op": "add", "path": f"/{key}", "value": value}, {"op": "test", "path": f"/{key}", "value": value}]
    patched = apply_json_patch(copy.deepcopy(document), [*steps, {"op": "remove", "path": f"/{key}"}])
    assert patched == {name: row for name, row in document.items() if name != key}


def test_json_patch_moves_copies_and_escapes() -> None:
    """Move, copy, append and the two escapes work as in the RFC."""
    document = {"a/b": {"x": 1}, "list": [1, 2]}
    steps = [
        {"op": "copy", "from": "/a~1b/x", "path": "/y"},
        {"op": "move", "from": "/a~1b", "path": "/m~0n"},
        {"op": "add", "path": "/list/-", "value": 3},
        {"op": "add", "path": "/list/0", "value": 0},
        {"op": "replace", "path": "/list/1", "value": 9},
    ]
    assert apply_json_patch(document, steps) == {"m~n": {"x": 1}, "y": 1, "list": [0, 9, 2, 3]}


@pytest.mark.parametrize(
    "step",
    [
        {"op": "remove", "path": "/nope"},
        {"op": "test", "path": "/a", "value": True},
        {"op": "replace", "path": "/list/7", "value": 1},
        {"op": "turn", "path": "/a"},
    ],
)
def test_json_patch_that_does_not_fit_is_rejected_without_causes(step: dict) -> None:
    """A missing path, failed test, bad index or unknown operation is the same bare 422."""
    with pytest.raises(ApiError) as caught:
        apply_json_patch({"a": 1, "list": []}, [step])
    assert caught.value.code == 422
    assert str(caught.value) == "the server rejected our request due to an error in our request"


NAMES = st.lists(st.sampled_from("abcdef"), unique=True, max_size=5)


def _containers(names: list[str], image: str = "old") -> dict:
    return {"spec": {"containers": [{"name": name, "image": image} for name in names]}}


@settings(max_examples=100, deadline=None)
@given(NAMES, NAMES)
def test_strategic_merge_keeps_the_servers_order_and_changes_only_what_is_named(old: list, patched: list) -> None:
    """Lists merge by name: named items change, others stay as they were and in their relative order."""
    node = schema.of("v1", "Pod")
    out = apply_strategic_patch(_containers(old), _containers(patched, "new"), node)["spec"]["containers"]
    names = [row["name"] for row in out]
    assert sorted(names) == sorted(set(old) | set(patched))
    assert {row["name"] for row in out if row["image"] == "new"} == set(patched)
    assert [name for name in names if name in old and name not in patched] == [
        name for name in old if name not in patched
    ]
    assert [name for name in names if name in patched] == patched


@settings(max_examples=50, deadline=None)
@given(NAMES, NAMES)
def test_strategic_delete_directive_removes_exactly_the_named(old: list, gone: list) -> None:
    """`$patch: delete` takes the named items out and nothing else."""
    patch = {"spec": {"containers": [{"name": name, "$patch": "delete"} for name in gone]}}
    out = apply_strategic_patch(_containers(old), patch, schema.of("v1", "Pod"))
    assert [row["name"] for row in out["spec"]["containers"]] == [name for name in old if name not in gone]


def test_strategic_directives() -> None:
    """replace, retainKeys, deleteFromPrimitiveList and setElementOrder do what they say."""
    node = schema.of("apps/v1", "Deployment")
    live = {
        "metadata": {"finalizers": ["a/b", "c/d"], "labels": {"x": "y"}},
        "spec": {
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
            "template": _containers(["a", "b"]),
        },
    }
    patch = {
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"], "labels": {"$patch": "replace", "z": "1"}},
        "spec": {
            "strategy": {"$retainKeys": ["type"], "type": "Recreate"},
            "template": {
                "spec": {
                    "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
                    "containers": [{"name": "b", "image": "n"}],
                }
            },
        },
    }
    out = apply_strategic_patch(live, patch, node)
    assert out["metadata"] == {"finalizers": ["c/d"], "labels": {"z": "1"}}
    assert out["spec"]["strategy"] == {"type": "Recreate"}
    assert [row["name"] for row in out["spec"]["template"]["spec"]["containers"]] == ["b", "a"]


def test_strategic_item_without_its_merge_key_is_an_error() -> None:
    """The text names the item in Go's notation and the key."""
    with pytest.raises(ApiError, match=r"map: map\[image:x\] does not contain declared merge key: name"):
        apply_strategic_patch(_containers(["a"]), {"spec": {"containers": [{"image": "x"}]}}, schema.of("v1", "Pod"))
