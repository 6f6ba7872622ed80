"""Decoding: what has the wrong type is refused before anything trusts it."""

from typing import Any

import pytest

from itbench.core.ids import Ids
from itbench.kube.client import ApiError
from itbench.kube.plane import ControlPlane
from itbench.kube.requests import Options

FIELDS = ("name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "uid")
WRONG: dict[str, Any] = {"a boolean": True, "a number": 5, "numbers": [5], "an object of numbers": {"a": {"b": 1}}}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_metadata_of_wrong_types_is_refused_for_every_kind(wrong: Any) -> None:
    """400 whether the kind has a published schema or not, and in every field that has another type."""
    plane = ControlPlane(ids=Ids(1))
    for resource in plane.registry.table:
        if "create" not in resource.verbs or not resource.storage:
            continue
        for metadata in (wrong, *({"name": "x", field: wrong} for field in FIELDS)):
            body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
            if metadata == {"a": {"b": 1}}:
                continue  # an object with a field that is not known
            with pytest.raises(ApiError) as caught:
                plane.registry.create(resource, body, "default" if resource.namespaced else "", Options())
            assert caught.value.code in (400, 405), (resource.kind, metadata, str(caught.value))
