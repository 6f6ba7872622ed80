"""Laws of schemas: pruning and defaulting change nothing the second time; validation agrees with a JSON Schema validator."""

from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from itbench.kube.custom.defaulting import fill
from itbench.kube.custom.pruning import prune
from itbench.kube.custom.validation import validate

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(
    st.booleans(), st.integers(-5, 5), st.sampled_from(["", "x", "xyz", "1"]), st.sampled_from([0.5, 1.5])
)
VALUES = st.recursive(
    SCALARS | st.none(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3),
    max_leaves=8,
)


def _with_default(part: dict) -> dict:
    example = {"string": "x", "integer": 1, "boolean": True, "number": 0.5, "array": [], "object": {}}[part["type"]]
    return {**part, "default": example}


def _grown(below: st.SearchStrategy[dict]) -> st.SearchStrategy[dict]:
    fields = st.dictionaries(NAMES, below, min_size=1, max_size=3)
    return st.one_of(
        st.builds(lambda props: {"type": "object", "properties": props}, fields),
        st.builds(
            lambda props, keep: {
                "type": "object",
                "properties": props,
                "required": sorted(props)[:1],
                "maxProperties": keep,
            },
            fields,
            st.integers(1, 3),
        ),
        st.builds(lambda part: {"type": "object", "additionalProperties": part, "minProperties": 1}, below),
        st.builds(lambda part, size: {"type": "array", "items": part, "maxItems": size}, below, st.integers(0, 3)),
        st.builds(lambda part: {**part, "not": {"enum": ["x", 1]}}, below),
    )


LEAVES = st.one_of(
    st.builds(lambda size: {"type": "string", "maxLength": size}, st.integers(0, 3)),
    st.just({"type": "string", "enum": ["x", "1"]}),
    st.just({"type": "string", "pattern": "^x+"}),
    st.builds(lambda low: {"type": "integer", "minimum": low, "maximum": 4}, st.integers(-3, 3)),
    st.just({"type": "number", "multipleOf": 0.5}),
    st.just({"type": "boolean"}),
)
SCHEMAS = st.recursive(LEAVES, _grown, max_leaves=6)
WITH_DEFAULTS = st.recursive(LEAVES.map(_with_default), lambda below: _grown(below).map(_with_default), max_leaves=6)


def _whole(part: dict) -> dict:
    return {"type": "object", "properties": {"spec": part}}


@settings(max_examples=80, deadline=None)
@given(SCHEMAS, VALUES)
def test_pruning_twice_is_pruning_once(part: dict, value: Any) -> None:
    """What is left after pruning is all known."""
    once = prune({"spec": value}, _whole(part))
    assert prune(once, _whole(part)) == once


@settings(max_examples=80, deadline=None)
@given(WITH_DEFAULTS, VALUES)
def test_defaulting_twice_is_defaulting_once(part: dict, value: Any) -> None:
    """Defaults leave nothing to fill in, and an object that needs none is returned itself."""
    once = fill({"spec": value}, _whole(part))
    assert fill(once, _whole(part)) is once


@settings(max_examples=200, deadline=None)
@given(SCHEMAS, VALUES)
def test_validation_agrees_with_json_schema(part: dict, value: Any) -> None:
    """A value is faulty exactly when a JSON Schema validator says so."""
    faulty = bool(validate(value, part, "spec"))
    assert faulty is not jsonschema.Draft4Validator(part).is_valid(value)
