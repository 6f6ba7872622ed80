"""The annotation that client-side apply keeps; kubectl's server-side applies bring it up to date. Called by the registry
and, about what kubectl may take over with it, by `managed`."""

import orjson

from itbench.kube.client import Obj
from itbench.kube.patch.fields import Fields, compare, difference, field_set, strip
from itbench.kube.schema import Node

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER = "kubectl"
"""Only the manager of this name keeps the annotation."""
MAX_BYTES = 256 * 1024
"""What all annotations of an object may hold together; an object with more loses the annotation."""
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def follow(obj: Obj, config: Obj, manager: str) -> None:
    """Set the annotation of an object that has one to the configuration that was just applied to it.

    Args:
        obj: the object after the apply; changed in place.
        config: the configuration as it was sent.
        manager: who applied it.

    Source: lastappliedupdater.go of apimachinery 1.34.
    """
    annotations = obj["metadata"].get("annotations") or {}
    if manager != MANAGER or not annotations.get(ANNOTATION):
        return
    kept = {**annotations, ANNOTATION: _text(config)}
    if sum(len(name.encode()) + len(value.encode()) for name, value in kept.items()) > MAX_BYTES:
        del kept[ANNOTATION]
    obj["metadata"]["annotations"] = kept


def allowed(live: Obj, node: Node | None, manager: str) -> Fields:
    """What kubectl may take over from others without force: what it applied by the annotation and what is still so.

    Source: lastappliedmanager.go of apimachinery 1.34.
    """
    text = (live["metadata"].get("annotations") or {}).get(ANNOTATION)
    if manager != MANAGER or not text:
        return {}
    try:
        config = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(config, dict) or not isinstance(config.get("metadata", {}), dict):
        return {}
    changed, _ = compare(strip(live), strip(config), node)
    return difference(field_set(config, node), changed)


def _text(config: Obj) -> str:
    """The configuration as Go writes it: sorted, escaped for HTML, without the annotation itself."""
    sent = config.get("metadata") or {}
    metadata = {key: value for key, value in sent.items() if key not in ("annotations", "managedFields")}
    rest = {key: value for key, value in (sent.get("annotations") or {}).items() if key != ANNOTATION}
    if rest:
        metadata["annotations"] = rest
    text = orjson.dumps({**config, "metadata": metadata}, option=orjson.OPT_SORT_KEYS).decode()
    for letter, escape in _ESCAPES.items():
        text = text.replace(letter, escape)
    return text + "\n"
