"""Decoding of request bodies as the real server's Go types would: unknown fields, wrong types, values that are not printed.

The result is a private copy, so the registry decodes instead of copying. Used by the registry for every body and patched object.
"""

import base64
import re
from dataclasses import dataclass, field
from typing import Any

from itbench.kube.client import ApiError, Obj
from itbench.kube.gotime import fault
from itbench.kube.quantity import QUANTITY_ERROR, canonical, is_quantity
from itbench.kube.schema import OBJECT_META, Node, definition
from itbench.kube.status import bad_request

MAX_DEPTH = 200
"""Levels of a body; the encoder of stored objects goes to 254, a real server's to 10,000."""
_DROP = object()

_POINTER_STRINGS = frozenset(
    {
        "storageClassName",
        "ingressClassName",
        "runtimeClassName",
        "volumeAttributesClassName",
        "loadBalancerClass",
        "holderIdentity",
        "appProtocol",
        "timeZone",
        "apiGroup",
        "seLinuxChangePolicy",
        "zone",
    }
)
"""Optional strings that are kept when empty."""
_ZERO_DROPPED = frozenset(
    {
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "paused",
        "unschedulable",
        "readOnly",
        "publishNotReadyAddresses",
        "stdin",
        "stdinOnce",
        "tty",
        "globalDefault",
        "minReadySeconds",
        "hostPort",
        "nodePort",
        "initialDelaySeconds",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "fullyLabeledReplicas",
        "numberAvailable",
        "numberUnavailable",
        "updatedNumberScheduled",
        "observedGeneration",
        "active",
        "succeeded",
        "failed",
    }
)
"""Optional numbers and booleans that are not printed when zero."""


class WrongType(Exception):
    """A value of the wrong JSON type, worded as Go's decoder does."""


@dataclass
class Decoded:
    """A decoded body: the copy, and the paths that the schema does not know (which the copy lacks)."""

    object: Obj
    unknown: list[str] = field(default_factory=list)


def json_name(value: Any) -> str:
    """What Go's decoder calls the type of a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


_GO = {"boolean": "bool", "number": "float64", "string": "string", "time": "string"}


_GO_TYPES = {
    "restartPolicy": "RestartPolicy",
    "dnsPolicy": "DNSPolicy",
    "protocol": "Protocol",
    "imagePullPolicy": "PullPolicy",
    "terminationMessagePolicy": "TerminationMessagePolicy",
    "sessionAffinity": "ServiceAffinity",
}


def _go_name(node: Node, field: str = "") -> str:
    if node.kind == "list" and node.items is not None:
        return "[]" + _go_name(node.items)
    if node.kind == "map" and node.values is not None:
        return "map[string]" + _go_name(node.values)
    if node.kind == "struct":
        parts = node.name.split(".")
        return ".".join(parts[-2:])
    if node.kind == "integer":
        return node.format or "int64"
    if node.enum and field in _GO_TYPES:
        return "v1." + _GO_TYPES[field]
    return _GO.get(node.kind, node.kind)


class _Decoder:
    """One walk over one body."""

    def __init__(self, raw: bool) -> None:
        self.raw = raw
        self.unknown: list[str] = []

    def fail(self, value: Any, node: Node, owner: str, path: str) -> WrongType:
        plain = ".".join(part.split("[")[0] for part in path.split("."))
        where = f"struct field {owner}.{plain} " if plain else "value "
        return WrongType(
            f"json: cannot unmarshal {json_name(value)} into Go {where}of type {_go_name(node, plain.rsplit('.', 1)[-1])}"
        )

    def out_of_range(self, value: int, node: Node, owner: str, path: str) -> WrongType:
        text = str(self.fail(value, node, owner, path))
        return WrongType(text.replace("unmarshal number", f"unmarshal number {value}", 1))

    def value(self, value: Any, node: Node, owner: str, path: str) -> Any:
        kind = node.kind
        if kind == "string":
            if type(value) is str:
                if node.format == "byte":
                    _check_base64(value)
                return value
        elif kind == "struct":
            if type(value) is dict:
                return self.struct(value, node, path)
        elif kind == "list":
            if type(value) is list:
                return self.list(value, node, owner, path)
        elif kind == "map":
            if type(value) is dict:
                return self.map(value, node, owner, path)
        else:
            return self.scalar(value, node, owner, path)
        raise self.fail(value, node, owner, path)

    def scalar(self, value: Any, node: Node, owner: str, path: str) -> Any:
        kind = node.kind
        if kind == "integer":
            whole = int(value) if type(value) is float and value.is_integer() else value
            if type(whole) is int:
                if not _fits(whole, node):
                    raise self.out_of_range(whole, node, owner, path)
                return whole
        elif kind == "boolean":
            if type(value) is bool:
                return value
        elif kind == "number":
            if type(value) in (int, float):
                return value
        elif kind == "quantity":
            if type(value) in (str, int, float):
                text = str(value)
                if not is_quantity(text):
                    raise WrongType(QUANTITY_ERROR)
                return text if self.raw else canonical(text)
        elif kind == "intorstring":
            if type(value) in (int, str):
                return value
        elif kind == "time":
            if type(value) is str:
                if why := fault(value, micro=_is_micro(node)):
                    raise WrongType(why)
                return value
        else:
            return clone(value)
        raise self.fail(value, node, owner, path)

    def struct(self, value: Obj, node: Node, path: str) -> Obj:
        out: Obj = {}
        owner = node.name.rsplit(".", 1)[-1]
        required = node.required
        for key, raw in value.items():
            child = node.child(key)
            where = f"{path}.{key}" if path else key
            if child is None:
                self.unknown.append(where)
                continue
            if raw is None:
                continue
            found = self.value(raw, child, owner, where)
            if found or self.raw or key in required or _kept(key, found, child):
                out[key] = found
        if self.raw:
            return out
        for key in node.filled:
            if key not in out:
                out[key] = self.struct({}, node.child(key), "")  # type: ignore[arg-type]
        return out

    def list(self, value: "list[Any]", node: Node, owner: str, path: str) -> "list[Any]":
        items = node.items
        if items is None:
            return [clone(row) for row in value]
        return [
            self.value(row, items, owner, f"{path}[{index}]") if row is not None else _zero(items)
            for index, row in enumerate(value)
        ]

    def map(self, value: Obj, node: Node, owner: str, path: str) -> Obj:
        values = node.values
        if values is None:
            return {key: clone(row) for key, row in value.items()}
        return {
            key: self.value(row, values, owner, path) if row is not None else _zero(values)
            for key, row in value.items()
        }


_INT32, _INT64 = 2**31, 2**63


def _fits(value: int, node: Node) -> bool:
    limit = _INT32 if node.format == "int32" else _INT64
    return -limit <= value < limit


def _is_micro(node: Node) -> bool:
    return node.name.endswith("MicroTime")


_BASE64 = re.compile("[A-Za-z0-9+/\r\n]*")


def _check_base64(text: str) -> None:
    match = _BASE64.match(text)
    end = match.end() if match else 0
    rest = text[end:].rstrip("=\n")
    if rest:
        raise WrongType(f"illegal base64 data at input byte {end}")
    try:
        base64.b64decode(text)
    except ValueError:
        raise WrongType(f"illegal base64 data at input byte {len(text) - len(text) % 4}") from None


def _zero(node: Node) -> Any:
    return {"string": "", "struct": {}, "map": {}, "list": [], "integer": 0, "boolean": False}.get(node.kind)


def _kept(key: str, value: Any, node: Node) -> bool:
    """Whether a zero value of an optional field is printed."""
    kind = node.kind
    if kind in ("list", "map"):
        return False
    if kind == "string":
        return key in _POINTER_STRINGS
    if kind in ("integer", "boolean"):
        return key not in _ZERO_DROPPED
    return True


_UNMARSHAL = re.compile(r"json: cannot unmarshal (\w+) into Go (?:struct field \S+ |value )of type (\S+)")


def converter_text(why: str) -> str:
    """A type error in the words of the converter that strategic patches go through."""
    match = _UNMARSHAL.fullmatch(why)
    if match is None:
        return why
    found, wanted = match.groups()
    if (found, wanted) == ("number", "string"):
        return "cannot convert int64 to string"
    if wanted.startswith("[]"):
        return f"cannot restore slice from {found}"
    if wanted.startswith("map["):
        return f"cannot restore map from {found}"
    if wanted.startswith("v") and "." in wanted and found in ("object", "array"):
        return f"unrecognized type: {wanted.rsplit('.', 1)[-1]}"
    return f"unrecognized type: {wanted}"


def clone(value: Any) -> Any:
    """A deep copy of plain JSON."""
    if type(value) is dict:
        return {key: clone(row) for key, row in value.items()}
    if type(value) is list:
        return [clone(row) for row in value]
    return value


def check_depth(value: Any) -> None:
    """Raises ApiError 400 when a value nests too deep; does not itself recurse."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise bad_request(f"exceeded max depth ({MAX_DEPTH})")
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below += [row for row in one.values() if isinstance(row, dict | list)]
            elif isinstance(one, list):
                below += [row for row in one if isinstance(row, dict | list)]
        level = below


class _Odd(Exception):
    """Something that the quick decoder leaves to the thorough one."""


def _quick_struct(value: Obj, node: Node) -> Obj:
    """Like `_Decoder.struct` for bodies without unknown fields and wrong types, several times faster."""
    out: Obj = {}
    known, required = node.children(), node.required
    for key, raw in value.items():
        if raw is None:
            if key not in known:
                raise _Odd
            continue
        child = known.get(key)
        if child is None:
            raise _Odd
        kind = child.kind
        if kind == "string":
            if type(raw) is not str or child.format == "byte":
                raise _Odd
            if raw or key in required or key in _POINTER_STRINGS:
                out[key] = raw
        elif kind in ("integer", "boolean"):
            if type(raw) is not (int if kind == "integer" else bool) or not -_INT32 <= raw < _INT32:
                raise _Odd
            if raw or key in required or key not in _ZERO_DROPPED:
                out[key] = raw
        else:
            found = _quick(raw, child)
            if found or key in required or kind not in ("list", "map"):
                out[key] = found
    for key in node.filled:
        if key not in out:
            out[key] = _quick_struct({}, known[key])
    return out


def _quick(value: Any, node: Node) -> Any:
    kind, found = node.kind, type(value)
    if kind == "struct" and found is dict:
        return _quick_struct(value, node)
    if kind == "list" and found is list and node.items is not None:
        items = node.items
        if items.kind == "struct":
            return [_quick_struct(row, items) if type(row) is dict else _odd() for row in value]
        return [_quick(row, items) for row in value]
    if kind == "map" and found is dict and node.values is not None:
        values = node.values
        return {key: _quick(row, values) for key, row in value.items()}
    if kind == "string" and found is str and node.format != "byte":
        return value
    if kind == "integer" and found is int and -_INT32 <= value < _INT32:
        return value
    if kind == "time" and found is str and not fault(value, micro=_is_micro(node)):
        return value
    if kind == "quantity" and found is str and is_quantity(value):
        return canonical(value)
    if kind == "intorstring" and found in (int, str):
        return value
    if kind == "shared":
        return value
    if kind == "any":
        return clone(value)
    raise _Odd


def _odd() -> Any:
    raise _Odd


def decode(body: Obj, node: Node | None, *, raw: bool = False) -> Decoded:
    """Copy a body through its schema.

    Args:
        body: the object as it came.
        node: its schema; None knows the metadata alone and keeps everything else (built-in kinds without a published schema).
        raw: keep values as they were sent: nothing filled in, dropped as zero or normalised (for apply configurations).

    Raises:
        ApiError: 400, a value has the wrong type.
    """
    if node is None:
        return _decode_untyped(body, raw)
    if not raw:
        try:
            return Decoded(_quick_struct(body, node))
        except _Odd:
            pass
    decoder = _Decoder(raw)
    try:
        decoded = decoder.struct(body, node, "")
    except WrongType as error:
        raise handled_as(body, str(error)) from None
    return Decoded(decoded, decoder.unknown)


def _decode_untyped(body: Obj, raw: bool) -> Decoded:
    """A copy of an object of which only the metadata has a schema."""
    if body.get("metadata") is None:
        return Decoded(clone(body))
    try:
        found, unknown = decode_metadata(body["metadata"], raw=raw)
    except WrongType as error:
        raise handled_as(body, str(error)) from None
    copied = {key: found if key == "metadata" else clone(value) for key, value in body.items()}
    return Decoded(copied, [f"metadata.{name}" for name in unknown])


def decode_metadata(value: Any, *, raw: bool = False) -> tuple[Obj, list[str]]:
    """A copy of the metadata of an object without a typed schema, and the paths in it that ObjectMeta does not know.

    Raises:
        WrongType: it is no object, or a value in it has the wrong type.
    """
    if not isinstance(value, dict):
        raise WrongType(f"json: cannot unmarshal {json_name(value)} into Go value of type v1.ObjectMeta")
    return decode_part(value, definition(OBJECT_META), raw=raw)


def decode_part(value: Obj, node: Node, *, raw: bool = False) -> tuple[Obj, list[str]]:
    """A copy of a part of an object or of options, and the paths that its schema does not know.

    Raises:
        WrongType: a value has the wrong type.
    """
    decoder = _Decoder(raw)
    return decoder.struct(value, node, ""), decoder.unknown


def handled_as(body: Obj, why: str) -> ApiError:
    """400: the body is not an object of its kind."""
    kind = body.get("kind", "")
    version = str(body.get("apiVersion", "")).rsplit("/", 1)[-1]
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')
