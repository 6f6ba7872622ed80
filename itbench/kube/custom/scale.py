"""The `scale` subresource of custom resources; called by `itbench.kube.subresources`."""

from typing import Any

from itbench.kube import status
from itbench.kube.client import Obj
from itbench.kube.custom import jsonpath
from itbench.kube.custom.model import Model
from itbench.kube.resources import Resource

_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def of(model: Model, obj: Obj) -> Obj:
    """The autoscaling/v1 Scale of an object.

    Raises:
        ApiError: 500, there is no number where the replicas should be.
    """
    spec_path, state_path, selector_path = model.scale_paths()
    shown: Obj = {"replicas": _number(jsonpath.get(obj, state_path))}
    selector = jsonpath.get(obj, selector_path) if selector_path else None
    if selector:
        shown["selector"] = selector
    replicas = _number(jsonpath.get(obj, spec_path))
    metadata = obj["metadata"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in _KEPT if key in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": shown,
    }


def _number(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def put(resource: Resource, obj: Obj, replicas: int) -> Obj:
    """An object (any version, not shared) with other spec replicas."""
    model = resource.model
    assert model is not None
    shown = dict(model.read(obj))
    path = model.scale_paths()[0]
    for depth in range(1, len(path)):
        below = jsonpath.get(shown, path[:depth])
        if below is not None and not isinstance(below, dict):
            raise status.internal(
                f"{'.'.join(path[:depth])} accessor error: {below} is not of the type map[string]interface {{}}"
            )
    jsonpath.put(shown, path, replicas)
    return model.write(shown)
