"""Kind, version and metadata of what comes in, before anything trusts their types; called by the registry."""

from typing import Any

from itbench.kube.client import Obj
from itbench.kube.decode import handled_as, json_name
from itbench.kube.resources import Resource
from itbench.kube.status import failure


def check_type_meta(kind: Any, api_version: Any, resource: Resource) -> None:
    """Kind and version are texts; raises ApiError 400."""
    for key, value in (("kind", kind), ("apiVersion", api_version)):
        if not isinstance(value, str):
            text = f"json: cannot unmarshal {json_name(value)} into Go struct field .{key} of type string"
            raise handled_as({"kind": resource.kind, "apiVersion": resource.api_version}, text)


def configuration(config: Obj) -> Obj:
    """A configuration to apply; a kind or version that is no text counts as none, as on a real server.

    Raises:
        ApiError: 500, as there: its metadata is no object.
    """
    heads = {key: value if isinstance(value := config.get(key), str) else "" for key in ("apiVersion", "kind")}
    metadata = config.get("metadata")
    if not isinstance(metadata, dict | None):
        what = f"(/; {heads['apiVersion']}, Kind={heads['kind']})"
        text = f"failed to create typed patch object {what}: .metadata: expected map, got &{{{metadata}}}"
        raise failure(500, "", text)
    return {**config, **heads}
