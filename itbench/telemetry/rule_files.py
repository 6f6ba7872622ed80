"""Alerting and recording rules as documents: Prometheus rule files and PrometheusRule objects."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from itbench.core.errors import UsageError
from itbench.telemetry.promql import QueryError, parse
from itbench.telemetry.promql.gotext import parse_duration_ns
from itbench.telemetry.templates import check

_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_RULE_FIELDS = frozenset(("alert", "record", "expr", "for", "keep_firing_for", "labels", "annotations"))
_GROUP_FIELDS = frozenset(
    ("name", "interval", "rules", "limit", "labels", "query_offset", "partial_response_strategy")
)  # the last one is Thanos' and stands in PrometheusRule objects


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        kind: `alerting` or `recording`.
        name: of the alert or of the recorded metric.
        expr: PromQL.
        for_s: how long the expression has to hold before the alert fires.
        keep_firing_for_s: how long it goes on firing after the expression stopped to hold.
        labels, annotations: templates.
    """

    kind: Literal["alerting", "recording"]
    name: str
    expr: str
    for_s: float = 0.0
    keep_firing_for_s: float = 0.0
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that are evaluated one after the other, every `interval_s` seconds."""

    name: str
    rules: tuple[Rule, ...]
    interval_s: float = 30.0
    file: str = "rules.yaml"
    labels: Mapping[str, str] = field(default_factory=dict)


def _duration_s(text: object, where: str) -> float:
    if text in (None, "", 0):
        return 0.0
    try:
        return parse_duration_ns(str(text)) / 1e9
    except ValueError as error:
        raise UsageError(
            f"{where} is not a duration", seen=text, expected="a number with a unit, such as 5m"
        ) from error


def _texts(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, Mapping | None):
        raise UsageError(f"{where} is not a mapping", seen=value)
    return {str(key): str(text) for key, text in (value or {}).items()}


def _parse_rule(data: Mapping[str, Any], where: str) -> Rule:
    unknown = sorted(set(data) - _RULE_FIELDS)
    if unknown:
        raise UsageError(f"{where}: unknown field", seen=unknown[0], expected=", ".join(sorted(_RULE_FIELDS)))
    alert, record = data.get("alert"), data.get("record")
    if bool(alert) == bool(record):
        raise UsageError(
            f"{where}: exactly one of record and alert has to be set", seen={"alert": alert, "record": record}
        )
    expr = str(data.get("expr") or "")
    try:
        parse(expr)
    except QueryError as error:
        raise UsageError(f"{where}: could not parse expression: {error}") from error
    labels = _texts(data.get("labels"), f"{where}: labels")
    if record:
        wrong = [name for name in ("for", "keep_firing_for", "annotations") if data.get(name)]
        if wrong:
            raise UsageError(f"{where}: invalid field in recording rule", seen=wrong[0])
        if not _METRIC.fullmatch(str(record)):
            raise UsageError(f"{where}: invalid recording rule name", seen=record)
        return Rule("recording", str(record), expr, labels=labels)
    annotations = _texts(data.get("annotations"), f"{where}: annotations")
    for what, texts in (("label", labels), ("annotation", annotations)):
        for name, text in texts.items():
            try:
                check(text, str(alert))
            except UsageError as error:
                raise UsageError(f'{where}: {what} "{name}": {error}') from error
    return Rule(
        "alerting",
        str(alert),
        expr,
        _duration_s(data.get("for"), f"{where}: for"),
        _duration_s(data.get("keep_firing_for"), f"{where}: keep_firing_for"),
        labels,
        annotations,
    )


def parse_groups(document: Mapping[str, Any], file: str = "rules.yaml", interval_s: float = 30.0) -> list[Group]:
    """The groups of a rule file that has been read from YAML, or of the `spec` of a PrometheusRule.

    Args:
        document: `{"groups": [...]}`.
        file: shown by the HTTP API.
        interval_s: of groups that name none.

    Raises:
        UsageError: names group and rule, what is wrong, and the value seen.
    """
    groups: list[Group] = []
    for data in document.get("groups") or []:
        name = str(data.get("name") or "")
        if not name:
            raise UsageError(f"{file}: group without a name")
        unknown = sorted(set(data) - _GROUP_FIELDS)
        if unknown:
            raise UsageError(f"{file}: group {name!r}: unknown field", seen=unknown[0])
        if any(each.name == name for each in groups):
            raise UsageError(f"{file}: groupname is repeated in the same file", seen=name)
        rules = tuple(
            _parse_rule(
                each, f"{file}: group {name!r}, rule {number}, {each.get('alert') or each.get('record') or '?'!r}"
            )
            for number, each in enumerate(data.get("rules") or [], start=1)
        )
        interval = _duration_s(data.get("interval"), f"{file}: group {name!r}: interval") or interval_s
        groups.append(Group(name, rules, interval, file, _texts(data.get("labels"), f"{file}: group {name!r}: labels")))
    return groups


def groups_from_objects(
    objects: Iterable[Mapping[str, Any]], interval_s: float = 30.0
) -> tuple[list[Group], dict[tuple[str, str], str]]:
    """The groups of PrometheusRule objects (monitoring.coreos.com/v1), and what is wrong with those that cannot be used.

    Returns:
        Groups in the order of namespace and name; problems by (namespace, name). A wrong object does not harm the others.
    """
    groups: list[Group] = []
    problems: dict[tuple[str, str], str] = {}
    keyed = [((each["metadata"].get("namespace", ""), each["metadata"]["name"]), each) for each in objects]
    for (namespace, name), each in sorted(keyed, key=lambda pair: pair[0]):
        file = f"/etc/prometheus/rules/{namespace}-{name}.yaml"
        try:
            groups.extend(parse_groups(each.get("spec") or {}, file, interval_s))
        except UsageError as error:
            problems[namespace, name] = str(error)
    return groups, problems
