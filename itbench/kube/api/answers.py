"""Content negotiation and encoding: what form an answer takes, and its bytes; called by all handlers of the API server."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import orjson
import yaml
from aiohttp import web
from multidict import CIMultiDict

from itbench.kube import versions
from itbench.kube.client import ApiError, Obj
from itbench.kube.resources import Resource
from itbench.kube.status import Problem, failure
from itbench.kube.store import Entry

JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPTED_BODIES = (JSON, "application/yaml", PROTOBUF)
PATCHES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}
_PRETTY_AGENTS = ("curl", "Wget", "Mozilla/5.0")


@dataclass(frozen=True, slots=True)
class Form:
    """The form of an answer: `table` and `partial` are views of objects, in JSON."""

    kind: Literal["json", "yaml", "table", "partial"]
    version: str = "v1"


PLAIN = Form("json")


@lru_cache(256)
def negotiate(accept: str, streams: bool = False) -> Form:
    """The first form in an Accept header that we serve; a path that can be watched (`streams`) offers more.

    Raises:
        ApiError: 406, none.
    """
    if not accept:
        return PLAIN
    for part in accept.split(","):
        media, *rest = (piece.strip() for piece in part.split(";"))
        fields = dict(piece.partition("=")[::2] for piece in rest)
        if media in (JSON, "*/*", "application/*"):
            view = fields.get("as", "")
            if view == "Table":
                return Form("table", fields.get("v", "v1"))
            if view in ("PartialObjectMetadata", "PartialObjectMetadataList"):
                return Form("partial", fields.get("v", "v1"))
            if not view:
                return PLAIN
        if media in ("application/yaml", "text/yaml", "application/x-yaml"):
            return Form("yaml")
    raise not_acceptable(streams)


def not_acceptable(streams: bool = False) -> ApiError:
    """406: the resource has no such form."""
    forms = (*ACCEPTED_BODIES, *((f"{JSON};stream=watch", f"{PROTOBUF};stream=watch") if streams else ()))
    text = f"406: Not Acceptable\n\nAvailable representations: {', '.join(forms)}"
    return failure(406, "NotAcceptable", text, Problem())


def wants_pretty(query: dict[str, str], agent: str) -> bool:
    """People with curl and browsers get indented JSON, as from a real server."""
    if "pretty" in query:
        return query["pretty"] not in ("false", "0")
    return agent.startswith(_PRETTY_AGENTS)


def headers(warnings: Iterable[str] = ()) -> CIMultiDict[str]:
    """Headers of every answer about resources."""
    found: CIMultiDict[str] = CIMultiDict({"Cache-Control": "no-cache, private"})
    for text in warnings:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        found.add("Warning", f'299 - "{escaped}"')
    return found


def encode(value: Any, form: Form, *, pretty: bool = False) -> bytes:
    """An object as JSON or YAML bytes."""
    if form.kind == "yaml":
        return yaml.dump(value, Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=10**6).encode()
    return orjson.dumps(value, option=orjson.OPT_INDENT_2) if pretty else orjson.dumps(value)


class _Dumper(yaml.SafeDumper):
    """Texts as the real server writes them: double quotes where there must be some, several lines as a block."""

    def ignore_aliases(self, data: Any) -> bool:
        """Equal parts are written out."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Lists begin at the indentation of their key."""
        super().increase_indent(flow, indentless)


def _text_node(dumper: _Dumper, text: str) -> yaml.Node:
    tag = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    plain = tag == "tag:yaml.org,2002:str" and text != ""
    style = "|" if "\n" in text else None if plain else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text_node)


class Reply(web.Response):
    """A whole answer: aiohttp's, made without the questions that bytes with a type do not raise."""

    def __init__(self, body: bytes, status: int, headers: CIMultiDict[str]) -> None:
        web.StreamResponse.__init__(self, status=status, _real_headers=headers)
        self._body = body


def respond(body: bytes, code: int = 200, *, form: Form = PLAIN, warnings: Iterable[str] = ()) -> web.Response:
    """The HTTP answer around encoded bytes."""
    kind = "application/yaml" if form.kind == "yaml" else JSON
    found = headers(warnings)
    found["Content-Type"] = kind
    return Reply(body, code, found)


def respond_error(error: ApiError, agent: str = "") -> web.Response:
    """A Status as an answer, indented for people; 429 and 503 say when to come back."""
    found = headers()
    found["Content-Type"] = JSON
    retry = error.status.get("details", {}).get("retryAfterSeconds")
    if retry:
        found["Retry-After"] = str(retry)
    pretty = error.code == 406 or wants_pretty({}, agent)
    return Reply(encode(error.status, PLAIN, pretty=pretty), error.code, found)


def object_bytes(resource: Resource, entry: Entry) -> bytes:
    """One stored object in the version asked for; the cached bytes where that is the stored one."""
    if resource.model is not None:
        return orjson.dumps(versions.to_served(entry.object, resource), option=orjson.OPT_SORT_KEYS)
    if entry.object["apiVersion"] == resource.api_version:
        return entry.bytes
    return orjson.dumps(versions.to_served(entry.object, resource))


def list_items(resource: Resource, entries: Iterable[Entry]) -> bytes:
    """Stored objects between the brackets of a list; those of built-in kinds without kind and version, as in Go's typed lists."""
    prefix = f'{{"apiVersion":"{resource.api_version}","kind":"{resource.kind}",'.encode()
    size = 0 if resource.custom else len(prefix)
    items = (object_bytes(resource, entry) for entry in entries)
    return b",".join([b"{" + raw[size:] if size and raw.startswith(prefix) else raw for raw in items])


def list_around(resource: Resource, items: bytes, meta: Obj) -> bytes:
    """A list with these items."""
    if resource.model is not None:
        meta = {"continue": "", **meta}
    head = {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": meta}
    return b"".join((orjson.dumps(head)[:-1], b',"items":[', items, b"]}"))


def partial(obj: Obj, version: str = "v1") -> Obj:
    """An object reduced to its metadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": obj["metadata"],
    }


def partial_list(objects: Iterable[Obj], meta: Obj, version: str = "v1") -> Obj:
    """A list of metadata."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": meta,
        "items": [partial(obj, version) for obj in objects],
    }
