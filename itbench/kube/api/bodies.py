"""Request bodies: JSON, YAML and protobuf -> plain objects; options of writes; called by `rest` and `reviews`."""

import json
from dataclasses import replace
from typing import Any, Literal, cast

import orjson
import yaml

from itbench.kube import duplicates, protobuf, schema
from itbench.kube.api import plainness
from itbench.kube.api.answers import ACCEPTED_BODIES, JSON, PATCHES, PROTOBUF
from itbench.kube.client import ApiError, Obj, PatchKind, Propagation
from itbench.kube.decode import MAX_DEPTH, WrongType, check_depth, decode, decode_part, json_name
from itbench.kube.kinds.gojson import go_json_error, go_quoted
from itbench.kube.rbac import User
from itbench.kube.requests import DeleteOptions, Options, PatchBody
from itbench.kube.status import Cause, Problem, bad_request, failure, invalid, unsupported_media_type

_YAML = ("application/yaml", "application/x-yaml", "text/yaml", "application/apply-patch+yaml")
_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
_LONGEST_MANAGER = 128
_SHOWN = 30
"""Bytes of a body that an error shows."""
_NO_KIND = "couldn't get version/kind; json parse error: "
_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_UNRECOGNIZED = "the object provided is unrecognized: "
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _PlainLoader(_Loader):  # type: ignore[misc]
    """YAML without timestamps: times stay text, as in JSON."""


_PlainLoader.yaml_implicit_resolvers = {
    key: [row for row in rows if row[0] != "tag:yaml.org,2002:timestamp"]
    for key, rows in _Loader.yaml_implicit_resolvers.items()
}


def media_type(content_type: str) -> str:
    """The bare media type of a Content-Type header; JSON when there is none."""
    return content_type.partition(";")[0].strip().lower() or JSON


def read_object(raw: bytes, content_type: str, wanted: str = "") -> Obj:
    """The object in a request body. `wanted`: the kind that the path asks for, for the texts of errors.

    Raises:
        ApiError: 415 for other content, 400 for bytes that are no object.
    """
    kind = media_type(content_type)
    if kind == "application/x-www-form-urlencoded":
        kind = JSON
    if kind not in (*ACCEPTED_BODIES, *_YAML):
        raise unsupported_media_type(ACCEPTED_BODIES)
    value = _read_value(raw, kind, wanted)
    if value is None:
        value = {}
    if isinstance(value, dict):
        _check_type_meta(value, raw)
    else:
        raise _unrecognized(
            raw, wanted, f"json: cannot unmarshal {json_name(value)} into Go value of type {_TYPE_META}"
        )
    return value


def _unrecognized(raw: bytes, wanted: str, why: str) -> ApiError:
    """400 for a body that does not say what it is. `wanted`: the kind that the path asks for."""
    if not wanted:
        return bad_request(f"{_UNRECOGNIZED}{_NO_KIND}{why}")
    shown = raw[:_SHOWN].decode("utf-8", "replace") if raw.startswith(b"{") else raw[:_SHOWN].hex()
    start = "<empty>" if not raw else shown + (" ..." if len(raw) > _SHOWN else "")
    return bad_request(f"the object provided is unrecognized (must be of type {wanted}): {_NO_KIND}{why} ({start})")


def _check_type_meta(value: Obj, raw: bytes) -> None:
    """Kind and version are texts, before anything looks for what they name; raises ApiError 400."""
    for key in ("apiVersion", "kind"):
        found = value.get(key)
        if not isinstance(found, str | None):
            start = raw[:_SHOWN].decode("utf-8", "replace") + (" ..." if len(raw) > _SHOWN else "")
            raise bad_request(
                f"{_UNRECOGNIZED}couldn't get version/kind; json parse error: json: cannot unmarshal {json_name(found)} into "
                f"Go struct field .{key} of type string ({start})"
            )


def read_typed(raw: bytes, content_type: str, api_version: str, kind: str) -> Obj:
    """The object in a body of a kind that is never stored; raises ApiError 400 where it does not fit the kind."""
    body = read_object(raw, content_type)
    decode({**body, "kind": kind, "apiVersion": api_version}, schema.of(api_version, kind), raw=True)
    return body


def _read_value(raw: bytes, kind: str, wanted: str = "") -> Any:
    try:
        if kind == PROTOBUF:
            return protobuf.decode(raw)
        if kind in _YAML and not raw.lstrip().startswith((b"{", b"[")):
            return plainness.plain(yaml.load(raw, Loader=_PlainLoader))
        return _read_json(raw)
    except RecursionError:
        raise bad_request(f"{_UNRECOGNIZED}couldn't get version/kind; json parse error: exceeded max depth") from None
    except (orjson.JSONDecodeError, json.JSONDecodeError) as error:
        raise _unrecognized(raw, wanted, go_json_error(raw.decode("utf-8", "replace")) or str(error)) from None
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: yaml: {_yaml_fault(error)}") from None
    except ValueError as error:
        raise bad_request(f"the body of the request is damaged: {error}") from None


def _yaml_fault(error: yaml.YAMLError) -> str:
    """A parser's fault as Go's port of the same parser tells it; it counts lines from 0, those of the scanner from 1."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return str(error).splitlines()[0]
    marks = [mark.line for mark in (error.context_mark, error.problem_mark) if mark is not None and mark.line]
    line = (marks[0] if marks else 0) + isinstance(error, yaml.scanner.ScannerError)
    return (f"line {line}: " if line else "") + (error.problem or "unknown problem parsing YAML content")


def _read_json(raw: bytes) -> Any:
    """JSON as Go reads it: bytes that are no UTF-8 become replacement characters; raises JSONDecodeError."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        mended = raw.decode("utf-8", "replace").encode()
        if mended == raw:
            raise
        value = orjson.loads(mended)
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH:
        check_depth(value)
    return value


def read_patch(raw: bytes, content_type: str) -> PatchBody:
    """The patch in a request body; raises 415 or 400."""
    kind = PATCHES.get(media_type(content_type))
    if kind is None:
        raise failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", Problem())
    if kind == "apply":
        value = _read_value(raw, "application/yaml")
    else:
        try:
            value = _read_json(raw)
        except orjson.JSONDecodeError as error:
            text = go_json_error(raw.decode("utf-8", "replace")) or str(error)
            raise bad_request(text if kind == "strategic" else f"error decoding patch: {text}") from None
    return PatchBody(cast(PatchKind, kind), value)


def _dry_run(values: list[str], kind: str) -> bool:
    wrong = [value for value in values if value != "All"]
    if wrong:
        rows = [
            Cause(
                "FieldValueNotSupported", "dryRun", f'Unsupported value: {json.dumps(values)}: supported values: "All"'
            )
        ]
        raise invalid(kind, "meta.k8s.io", "", rows)
    return bool(values)


def write_options(query: dict[str, str], user: User, agent: str, verb: str = "create") -> Options:
    """Options of a create, update or patch from its query; the manager defaults to the client program's name."""
    kind = f"{verb.capitalize()}Options"
    validation = query.get("fieldValidation", "Warn")
    if validation not in ("Strict", "Warn", "Ignore", ""):
        cause = Cause(
            "FieldValueNotSupported",
            "fieldValidation",
            f'Unsupported value: "{validation}": supported values: "", "Ignore", "Strict", "Warn"',
        )
        raise invalid(kind, "meta.k8s.io", "", [cause])
    _check_manager(query.get("fieldManager", ""), kind)
    return Options(
        manager=query.get("fieldManager") or agent.split("/", 1)[0] or "unknown",
        user=user.name,
        groups=user.groups,
        uid=user.uid,
        extra=user.extra,
        asked={key: query[key] for key in ("fieldManager", "fieldValidation") if query.get(key)},
        dry_run=_dry_run([query["dryRun"]] if query.get("dryRun") else [], kind),
        validation=cast(Literal["Strict", "Warn", "Ignore"], validation or "Warn"),
        force=query.get("force") in ("true", "1"),
    )


def check_patch_options(kind: PatchKind, query: dict[str, str]) -> None:
    """What an apply needs and only an apply may ask for; raises ApiError 422."""
    faults = []
    if kind == "apply" and not query.get("fieldManager"):
        faults.append(Cause("FieldValueRequired", "fieldManager", "Required value: is required for apply patch"))
    if kind != "apply" and query.get("force"):
        faults.append(Cause("FieldValueForbidden", "force", "Forbidden: may not be specified for non-apply patch"))
    if faults:
        raise invalid("PatchOptions", "meta.k8s.io", "", faults)


def _check_manager(name: str, kind: str) -> None:
    faults = []
    if len(name.encode("utf-8", "replace")) > _LONGEST_MANAGER:
        text = f"Too long: may not be more than {_LONGEST_MANAGER} bytes"
        faults.append(Cause("FieldValueTooLong", "fieldManager", text))
    for position, letter in enumerate(name):
        if not letter.isprintable():
            shown, code = go_quoted(name), f"U+{ord(letter):04X}"
            text = f"Invalid value: {shown}: invalid character {code} (at position {position})"
            faults.append(Cause("FieldValueInvalid", "fieldManager", text))
    if faults:
        raise invalid(kind, "meta.k8s.io", "", faults)


def duplicates_of(options: Options, raw: bytes, content_type: str) -> Options:
    """The options, knowing which keys the bytes of the body set twice."""
    kind = media_type(content_type)
    if options.validation == "Ignore" or kind == PROTOBUF:
        return options
    patch = PATCHES.get(kind)
    if patch == "apply" or (kind in _YAML and not raw.lstrip().startswith((b"{", b"["))):
        found = duplicates.in_yaml(raw, _PlainLoader)
    elif patch is not None:
        found = duplicates.in_operations(raw) if patch == "json" else duplicates.in_patch(raw)
    else:
        found = duplicates.in_json(raw)
    return replace(options, duplicates=found) if found.found else options


def delete_options(raw: bytes, content_type: str, query: dict[str, str]) -> tuple[DeleteOptions, bool]:
    """Options of a delete from its body, else its query: (options, dry run)."""
    body = read_object(raw, content_type) if raw.strip() else {}
    try:
        decode_part(body, schema.definition(_DELETE_OPTIONS), raw=True)
    except WrongType as error:
        raise failure(500, "", str(error)) from None  # a real server does not call it a bad request
    if body and body.get("kind", "DeleteOptions") != "DeleteOptions":
        version = body.get("apiVersion", "")
        text = f'no kind "{body["kind"]}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:110"'
        raise failure(500, "", text)
    grace = body.get("gracePeriodSeconds")
    if grace is None and query.get("gracePeriodSeconds"):
        grace = _number(query["gracePeriodSeconds"])
    policy = body.get("propagationPolicy") or query.get("propagationPolicy", "")
    orphan = body.get("orphanDependents", query.get("orphanDependents"))
    if orphan is not None and policy:
        text = f'Invalid value: "{policy}": orphanDependents and deletionPropagation cannot be both set'
        raise invalid("DeleteOptions", "meta.k8s.io", "", [Cause("FieldValueInvalid", "propagationPolicy", text)])
    if orphan is not None:
        policy = "Orphan" if orphan in (True, "true", "1") else "Background"
    if policy not in ("", "Background", "Foreground", "Orphan"):
        known = '"Foreground", "Background", "Orphan", "nil"'
        text = f'Unsupported value: "{policy}": supported values: {known}'
        raise invalid("DeleteOptions", "meta.k8s.io", "", [Cause("FieldValueNotSupported", "propagationPolicy", text)])
    wanted = body.get("preconditions") or {}
    dry = _dry_run(body.get("dryRun") or ([query["dryRun"]] if query.get("dryRun") else []), "DeleteOptions")
    options = DeleteOptions(grace, cast(Propagation, policy), wanted.get("uid", ""), wanted.get("resourceVersion", ""))
    return options, dry


def _number(text: str) -> int:
    try:
        return int(text[:40])
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
