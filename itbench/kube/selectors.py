"""Label and field selectors in kubectl's syntax, and `LabelSelector` objects of specs.

Called by the registry for lists and watches, and by controllers through `matches`. Parse errors carry the real server's texts.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from itbench.kube.client import Obj
from itbench.kube.names import label_value_errors
from itbench.kube.status import bad_request

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term: `op` is one of `in`, `notin`, `exists`, `!`, `gt`, `lt`."""

    key: str
    op: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Whether a label set satisfies the term."""
        value = labels.get(self.key)
        if self.op == "in":
            return value is not None and value in self.values
        if self.op == "notin":
            return value is None or value not in self.values
        if self.op in ("exists", "!"):
            return (value is not None) == (self.op == "exists")
        try:
            left, right = int(value or ""), int(self.values[0])
        except ValueError:
            return False
        return left > right if self.op == "gt" else left < right


@dataclass(frozen=True, slots=True)
class Selector:
    """A conjunction of requirements; empty matches everything."""

    terms: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels | None) -> bool:
        """Whether a label set satisfies all terms."""
        known = labels or {}
        return all(term.matches(known) for term in self.terms)


_TOKEN = re.compile(r"\s*(==|!=|=|,|\(|\)|!|<|>|[^\s=!,()<>]+)")
_SYMBOLS = {"=", "==", "!=", ",", "(", ")", "!", "<", ">"}


class _Parser:
    """Recursive descent over the tokens of one label selector."""

    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(text)
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def parse(self) -> tuple[Requirement, ...]:
        terms: list[Requirement] = []
        while self.peek():
            terms.append(self.term())
            token = self.take()
            if not token:
                break
            if token != ",":
                raise bad_request(f"found '{token}', expected: ',' or 'end of string'")
            if self.peek() in ("", ",", ")"):
                raise bad_request(f"found '{self.peek()}', expected: identifier after ','")
        return tuple(terms)

    def term(self) -> Requirement:
        token = self.take()
        if token == "!":
            return Requirement(self.key(self.take()), "!")
        key = self.key(token)
        token = self.peek()
        if token in ("", ","):
            return Requirement(key, "exists")
        self.take()
        if token in ("=", "=="):
            return Requirement(key, "in", (self.value(),))
        if token == "!=":
            return Requirement(key, "notin", (self.value(),))
        if token in ("in", "notin"):
            return Requirement(key, token, self.values())
        if token in ("<", ">"):
            return Requirement(key, "gt" if token == ">" else "lt", (self.value(),))
        raise bad_request(
            f"unable to parse requirement: found '{token}', expected: in, notin, =, ==, !=, gt, lt, exists, !"
        )

    @staticmethod
    def key(token: str) -> str:
        if token in _SYMBOLS or not token:
            raise bad_request(f"found '{token}', expected: !, identifier, or 'end of string'")
        return token

    def value(self) -> str:
        return "" if self.peek() in ("", ",") else self.key(self.take())

    def values(self) -> tuple[str, ...]:
        if (token := self.take()) != "(":
            raise bad_request(f"unable to parse requirement: found '{token}' expected: '('")
        found: list[str] = []
        while (token := self.take()) != ")":
            if not token:
                wanted = "',' or ')'" if found and self.tokens[-1] != "," else "',', ')' or identifier"
                raise bad_request(f"unable to parse requirement: found '', expected: {wanted}")
            if token != ",":
                found.append(self.key(token))
        return tuple(sorted(set(found)))


@lru_cache(1024)
def parse_labels(text: str) -> Selector:
    """`app=web,tier in (a,b),!old` -> Selector; raises ApiError 400."""
    terms = _Parser(text).parse()
    for term in terms:
        _check_values(term)
    return Selector(terms)


def _check_values(term: Requirement) -> None:
    """400 where a value could be no label's."""
    for index, value in enumerate(term.values if term.op in ("in", "notin") else ()):
        for why in label_value_errors(value):
            shown = json.dumps(value, ensure_ascii=False)
            where = f"values[{index}][{term.key}]"
            raise bad_request(f"unable to parse requirement: {where}: Invalid value: {shown}: {why}")


_OPS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": "gt", "Lt": "lt"}


def from_object(selector: Obj | None) -> Selector | None:
    """A `LabelSelector` (matchLabels, matchExpressions) -> Selector; None selects nothing."""
    if selector is None:
        return None
    terms = [Requirement(key, "in", (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    for row in selector.get("matchExpressions") or ():
        terms.append(Requirement(row["key"], _OPS[row["operator"]], tuple(row.get("values") or ())))
    return Selector(tuple(terms))


def matches(selector: Obj | None, labels: Labels | None) -> bool:
    """Whether a `LabelSelector` object selects a label set (null and malformed ones select nothing, empty everything)."""
    try:
        parsed = from_object(selector)
    except KeyError:
        return False
    return parsed is not None and parsed.matches(labels)


def is_valid(selector: Obj) -> bool:
    """Whether a `LabelSelector` object's operators are known and have the values they need."""
    rows = selector.get("matchExpressions") or ()
    return all(
        row.get("operator") in ("In", "NotIn", "Exists", "DoesNotExist")
        and bool(row.get("values")) == (row["operator"] in ("In", "NotIn"))
        for row in rows
    )


def format_selector(selector: Obj | None) -> str:
    """A `LabelSelector` as the one-line text that Tables and Scale show."""
    if selector is None:
        return "<none>"
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for row in sorted(selector.get("matchExpressions") or (), key=lambda row: str(row["key"])):
        values = ",".join(sorted(row.get("values") or ()))
        parts.append(
            {
                "In": f"{row['key']} in ({values})",
                "NotIn": f"{row['key']} notin ({values})",
                "Exists": row["key"],
                "DoesNotExist": f"!{row['key']}",
            }[row["operator"]]
        )
    return ",".join(parts) or "<none>"


_FIELDS: dict[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "replicationcontrollers": ("status.replicas",),
    "replicasets.apps": ("status.replicas",),
    "jobs.batch": ("status.successful",),
    "certificatesigningrequests.certificates.k8s.io": ("spec.signerName",),
    "resourceslices.resource.k8s.io": ("spec.nodeName", "spec.driver"),
}
_EVENTS_V1 = {"regarding": "involvedObject", "reportingController": "reportingComponent"}
_DEFAULTS = {
    "spec.hostNetwork": "false",
    "spec.unschedulable": "false",
    "status.replicas": "0",
    "status.successful": "0",
}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def field_value(obj: Obj, path: str) -> str:
    """The text that a field selector compares."""
    if path == "source":
        return _text((obj.get("source") or {}).get("component")) or _text(obj.get("reportingComponent"))
    if path == "status.podIPs":
        return ",".join(row["ip"] for row in obj.get("status", {}).get("podIPs") or ())
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            return _DEFAULTS.get(path, "")
    return _text(value)


_SPLIT = re.compile(r"(?<!\\),")
_TERM = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)


@lru_cache(1024)
def parse_fields(text: str, storage: str, allowed: tuple[str, ...] | None = None) -> tuple[tuple[str, bool, str], ...]:
    """`status.phase!=Failed,spec.nodeName=n` -> (path, equal?, value); raises ApiError 400 for unsupported paths.

    Args:
        text: the selector.
        storage: of which resource.
        allowed: the paths that a custom resource has; None for those of `storage`.
    """
    known = _FIELDS.get(storage, ()) if allowed is None else allowed
    terms: list[tuple[str, bool, str]] = []
    for part in _SPLIT.split(text):
        if not part:
            continue
        match = _TERM.fullmatch(part)
        if match is None:
            raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
        path, op, value = match.groups()
        head = path.split(".")[0]
        if storage == "events" and head in _EVENTS_V1:
            path = _EVENTS_V1[head] + path[len(head) :]
        if path not in ("metadata.name", "metadata.namespace") and path not in known:
            if storage in _FIELDS or allowed is not None:
                raise bad_request(f"field label not supported: {path}")
            raise bad_request(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')
        terms.append((path, op != "!=", re.sub(r"\\([\\,=])", r"\1", value)))
    return tuple(terms)


def predicate(
    storage: str, labels: str, fields: str, allowed: tuple[str, ...] | None = None
) -> Callable[[Obj], bool] | None:
    """One test for both selectors; None when both are empty. Raises ApiError 400."""
    selector = parse_labels(labels) if labels else None
    terms = parse_fields(fields, storage, allowed) if fields else ()
    if selector is None and not terms:
        return None

    def test(obj: Obj) -> bool:
        if selector is not None and not selector.matches(obj["metadata"].get("labels")):
            return False
        return all((field_value(obj, path) == value) == equal for path, equal, value in terms)

    return test
