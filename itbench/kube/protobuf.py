"""Decodes protobuf request bodies, which kubectl 1.32 and later send for typed commands; called by `itbench.kube.api`.

The envelope is `k8s\\0` and a message Unknown {1: {1: apiVersion, 2: kind}, 2: raw}. Field tables are generated
(`scripts/protobuf_tables.py`): message -> number -> [JSON name, type, flags], flags being `p` a pointer in Go, `r` always
written, `i` inline in JSON, `l` repeated, `m` map. Answers stay JSON, which clients accept.
"""

import base64
import gzip
import json
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

MAGIC = b"k8s\x00"
Obj = dict[str, Any]
Fields = dict[str, list[str]]
_META = "apimachinery.pkg.apis.meta.v1"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@cache
def _tables() -> tuple[dict[str, str], dict[str, Fields]]:
    data = json.loads(gzip.decompress((Path(__file__).parent / "data" / "protobuf.json.gz").read_bytes()))
    return data["groups"], data["messages"]


def decode(body: bytes) -> Obj:
    """One enveloped object -> its JSON form.

    Raises:
        ValueError: the bytes are no envelope, are damaged, or hold a kind without a table.
    """
    if not body.startswith(MAGIC):
        raise ValueError(f"no protobuf envelope: starts with {body[:4]!r}; expected {MAGIC!r}")
    try:
        envelope = {number: value for number, _, value in _scan(body[4:])}
        kind = {number: value.decode() for number, _, value in _scan(envelope.get(1, b""))}
        version, name = kind.get(1, ""), kind.get(2, "")
        decoded: Obj = _message(message_of(version, name), envelope.get(2, b""))
    except (IndexError, struct.error, AttributeError, TypeError) as error:
        raise ValueError(f"damaged protobuf: {error}") from error
    return {"apiVersion": version, "kind": name} | decoded


def message_of(version: str, kind: str) -> str:
    """The message name of a kind; meta kinds such as DeleteOptions are the same in every group."""
    groups, messages = _tables()
    for package in (groups.get(version, ""), _META):
        if f"{package}.{kind}" in messages:
            return f"{package}.{kind}"
    raise ValueError(f"no protobuf table for kind {kind!r} in {version!r}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("damaged protobuf: varint of more than 64 bits")


def _scan(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """(field number, wire type, value) of one message; length-delimited values are bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        value: Any
        if wire == 0:
            value, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = struct.unpack_from("<d" if wire == 1 else "<f", data, at)[0], at + size
        elif wire == 2:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise ValueError("damaged protobuf: field longer than its message")
            value, at = data[at : at + size], at + size
        else:
            raise ValueError(f"damaged protobuf: wire type {wire}")
        yield number, wire, value


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _scalar(kind: str, value: Any) -> Any:
    if kind == "string":
        return value.decode()
    if kind == "bytes":
        return base64.b64encode(value).decode()
    if kind == "bool":
        return bool(value)
    return _signed(value) if kind.startswith("int") else value


def _time(data: bytes, *, micro: bool = False) -> str | None:
    parts = {number: _signed(value) for number, _, value in _scan(data)}
    if not parts.get(1):
        return None
    moment = _EPOCH + timedelta(seconds=parts[1], microseconds=parts.get(2, 0) // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


def _first(data: bytes) -> Any:
    return next((value for number, _, value in _scan(data) if number == 1), None)


def _raw_json(data: bytes) -> Any:
    raw = _first(data)
    return json.loads(raw) if raw else None


def _int_or_string(data: bytes) -> Any:
    parts = {number: value for number, _, value in _scan(data)}
    return parts.get(3, b"").decode() if parts.get(1) == 1 else _signed(parts.get(2, 0))


def _quantity(data: bytes) -> str:
    raw: bytes | None = _first(data)
    return raw.decode() if raw else "0"


def _go_duration(data: bytes) -> str:
    """Nanoseconds in Go's notation, such as `1m30s`."""
    nanos = _signed(_first(data) or 0)
    sign, nanos = ("-", -nanos) if nanos < 0 else ("", nanos)
    minutes, rest = divmod(nanos, 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest / 1e9:.9f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else sign + seconds


_APIEXTENSIONS = "apiextensions_apiserver.pkg.apis.apiextensions.v1"


def _schema_or(data: bytes) -> Any:
    """JSONSchemaPropsOrBool: the schema when there is one, else whether anything is allowed."""
    parts = {number: value for number, _, value in _scan(data)}
    return _message(f"{_APIEXTENSIONS}.JSONSchemaProps", parts[2]) if 2 in parts else bool(parts.get(1))


def _schema_or_list(data: bytes) -> Any:
    """JSONSchemaPropsOrArray and -OrStringArray, in their first form where there is one."""
    parts = list(_scan(data))
    schema = f"{_APIEXTENSIONS}.JSONSchemaProps"
    single = [value for number, _, value in parts if number == 1]
    return _message(schema, single[0]) if single else [_message(schema, v) for n, _, v in parts if n == 2]


_SPECIAL: dict[str, Callable[[bytes], Any]] = {
    f"{_META}.Time": _time,
    f"{_META}.MicroTime": lambda data: _time(data, micro=True),
    f"{_META}.Duration": _go_duration,
    f"{_META}.FieldsV1": _raw_json,
    "apimachinery.pkg.runtime.RawExtension": _raw_json,
    "apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "apimachinery.pkg.api.resource.Quantity": _quantity,
    f"{_APIEXTENSIONS}.JSON": _raw_json,
    f"{_APIEXTENSIONS}.JSONSchemaPropsOrBool": _schema_or,
    f"{_APIEXTENSIONS}.JSONSchemaPropsOrArray": _schema_or_list,
}


def _value(kind: str, raw: Any) -> Any:
    if "." not in kind:
        return _scalar(kind, raw)
    special = _SPECIAL.get(kind)
    return special(raw) if special else _message(kind, raw)


def _unpack(kind: str, wire: int, raw: Any) -> list[Any]:
    """The items that one occurrence of a repeated field adds; packed scalars hold several."""
    if wire != 2 or "." in kind or kind in ("string", "bytes"):
        return [_value(kind, raw)]
    items, at = [], 0
    while at < len(raw):
        item, at = _varint(raw, at)
        items.append(_scalar(kind, item))
    return items


def _entry(kind: str, raw: bytes) -> tuple[str, Any]:
    """One entry of a map, whose keys are strings throughout the API."""
    parts = {number: value for number, _, value in _scan(raw)}
    empty: Any = b"" if "." in kind or kind in ("string", "bytes") else 0
    return parts.get(1, b"").decode(), _value(kind, parts.get(2, empty))


def _message(name: str, data: bytes) -> Any:
    fields = _tables()[1].get(name)
    if fields is None:
        raise ValueError(f"no protobuf table for {name!r}")
    result: Obj = {}
    for number, wire, raw in _scan(data):
        field = fields.get(str(number))
        if field is None:
            continue
        key, kind, flags = field
        if "m" in flags:
            item, value = _entry(kind, raw)
            result.setdefault(key, {})[item] = value
        elif "l" in flags:
            result.setdefault(key, []).extend(_unpack(kind, wire, raw))
        else:
            _put(result, key, flags, _value(kind, raw))
    return result.get("items", []) if "" in fields else result


def _put(result: Obj, key: str, flags: str, value: Any) -> None:
    """Set a single field as Go would write it in JSON: inline, or left out when it is empty and need not be there."""
    if "i" in flags and isinstance(value, dict):
        result.update(value)
    elif value is not None and ("p" in flags or "r" in flags or value not in ("", 0, {}, False)):
        result[key] = value
