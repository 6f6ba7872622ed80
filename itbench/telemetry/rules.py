"""Evaluates rule groups over the metric store: recorded series, alerts with their states, and the `ALERTS` series.

The world calls `evaluate` whenever `due` comes; the HTTP API, agents and graders read `alerts`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf, isnan
from typing import Any, Literal

import numpy as np

from itbench.core.clock import unix
from itbench.telemetry.labels import NAME, Labels, Matcher, freeze
from itbench.telemetry.metrics import NAN, Block, MetricStore, is_absent, is_stale
from itbench.telemetry.promql import Options, QueryError, query_instant, query_steps
from itbench.telemetry.promql.values import somewhere
from itbench.telemetry.rule_files import Group, Rule, groups_from_objects, parse_groups
from itbench.telemetry.templates import Sample, Scene, expand

NEVER = -1e15
"""A world second for what has not happened yet: times of recordings may be long before second 0."""
RESOLVED_KEPT_S = 900.0
"""How long a resolved alert is remembered."""

MAX_WAITING = 256
"""Moments that are put off at most."""

State = Literal["inactive", "pending", "firing"]


@dataclass(slots=True)
class Alert:
    """One alert of a rule. Times are world seconds."""

    labels: Labels
    annotations: dict[str, str]
    value: float
    active_at: float
    state: State = "pending"
    fired_at: float = NEVER
    resolved_at: float = NEVER
    keep_since: float = NEVER


@dataclass(slots=True)
class RuleState:
    """What is known of a rule between evaluations."""

    health: Literal["unknown", "ok", "err"] = "unknown"
    error: str = ""
    evaluated_at: float = NEVER
    alerts: dict[Labels, Alert] = field(default_factory=dict)


def _key(group: Group, number: int) -> str:
    return f"{group.file};{group.name};{number};{group.rules[number].name}"


class RuleEngine:
    """Rule groups and their state.

    Args:
        groups: as `parse_groups` or `groups_from_objects` give them.
        external: labels of the server, for templates.
        options: of the evaluation of queries.
    """

    def __init__(
        self, groups: Sequence[Group] = (), *, external: Mapping[str, str] | None = None, options: Options | None = None
    ) -> None:
        self.groups: tuple[Group, ...] = tuple(groups)
        self.external = dict(external or {})
        self.options = options or Options()
        self._states: dict[str, RuleState] = {}
        self._evaluated: dict[tuple[str, str], float] = {}
        self._waiting: dict[tuple[str, str], list[float]] = {}
        self._store: MetricStore | None = None

    def set_groups(self, groups: Sequence[Group]) -> None:
        """Load other rules; a rule that stays as it was keeps its alerts."""
        self.flush()
        before = {_key(group, n): rule for group in self.groups for n, rule in enumerate(group.rules)}
        after = {_key(group, n): rule for group in groups for n, rule in enumerate(group.rules)}
        self._states = {key: state for key, state in self._states.items() if before.get(key) == after.get(key)}
        names = {(group.file, group.name) for group in groups}
        self._evaluated = {name: at for name, at in self._evaluated.items() if name in names}
        self.groups = tuple(groups)

    def state(self, group: Group, number: int) -> RuleState:
        """The state of the rule with this number (from 0) in the group."""
        self.flush()
        return self._state(group, number)

    def _state(self, group: Group, number: int) -> RuleState:
        return self._states.setdefault(_key(group, number), RuleState())

    def evaluated_at(self, group: Group) -> float:
        """World second of the group's last evaluation, -inf before the first."""
        return self._evaluated.get((group.file, group.name), -inf)

    def due(self) -> float:
        """World second of the next evaluation: -inf before the first, inf without rules."""
        return min((self.evaluated_at(group) + group.interval_s for group in self.groups), default=inf)

    def evaluate(self, now: float, store: MetricStore) -> None:
        """Evaluate the groups whose interval has passed, at world second `now`.

        The work is put off until somebody looks at alerts, states or the store: then all moments are computed at once, as
        a range query, which gives the same answers at a fraction of the cost.
        """
        if self._store is not store:
            self.flush()
            self._store, store.settle = store, self.flush
        due = [group for group in self.groups if now >= self.evaluated_at(group) + group.interval_s - 1e-6]
        for group in due:
            self._evaluated[group.file, group.name] = now
            self._waiting.setdefault((group.file, group.name), []).append(now)
        if any(len(times) >= MAX_WAITING for times in self._waiting.values()):
            self.flush()

    def flush(self) -> None:
        """Do what `evaluate` put off."""
        waiting, self._waiting = self._waiting, {}
        if not waiting or self._store is None:
            return
        for group in self.groups:
            for number in range(len(group.rules)):
                name = f"rule/{_key(group, number)}"  # made in this order whenever the work is done
                if self._store.find(name) is None:
                    self._store.block(name, [])
        if _in_order(self.groups):
            self._flush_moments(waiting)
            return
        for now in sorted({time for times in waiting.values() for time in times}):
            self._flush_moments({name: [now] for name, times in waiting.items() if now in times})

    def _flush_moments(self, waiting: Mapping[tuple[str, str], list[float]]) -> None:
        assert self._store is not None
        for group in self.groups:
            times = waiting.get((group.file, group.name))
            for number in range(len(group.rules) if times else 0):
                self._evaluate_rule(group, number, times or [], self._store)

    def _evaluate_rule(self, group: Group, number: int, times: Sequence[float], store: MetricStore) -> None:
        rule, state = group.rules[number], self._state(group, number)
        for now, found in zip(times, _results(store, rule.expr, times, self.options), strict=True):
            state.evaluated_at = now
            try:
                if isinstance(found, QueryError):
                    raise found
                if rule.kind == "recording":
                    samples = self._record(rule, group, found)
                else:
                    samples = self._alert(rule, group, state, found, now)
            except QueryError as error:
                state.health, state.error = "err", str(error)
                continue
            state.health, state.error = "ok", ""
            _write(store, f"rule/{_key(group, number)}", samples, now)

    def _record(self, rule: Rule, group: Group, found: Mapping[Labels, float]) -> dict[Labels, float]:
        samples: dict[Labels, float] = {}
        for labels, value in found.items():
            target = freeze({**dict(labels), **group.labels, **rule.labels, NAME: rule.name})
            if target in samples:
                raise QueryError("vector contains metrics with the same labelset after applying rule labels")
            samples[target] = value
        return samples

    def _alert(
        self, rule: Rule, group: Group, state: RuleState, found: Mapping[Labels, float], now: float
    ) -> dict[Labels, float]:
        seen: set[Labels] = set()
        for labels, value in found.items():
            alert = self._instance(rule, group, labels, value, now)
            if alert.labels in seen:
                raise QueryError("vector contains metrics with the same labelset after applying alert labels")
            seen.add(alert.labels)
            known = state.alerts.get(alert.labels)
            if known is not None and known.state != "inactive":
                known.value, known.annotations, known.keep_since = value, alert.annotations, NEVER
            else:
                state.alerts[alert.labels] = alert
        for labels in list(state.alerts):
            if not _step(state.alerts[labels], rule, now, holds=labels in seen):
                del state.alerts[labels]
        return _alert_samples(state.alerts.values())

    def _instance(self, rule: Rule, group: Group, labels: Labels, value: float, now: float) -> Alert:
        def query(text: str) -> list[Sample]:
            assert self._store is not None
            found = query_instant(self._store, text, now, self.options)
            return [Sample(dict(each.labels), float(each.v[-1])) for each in found.series]

        seen, scene = dict(labels), Scene(rule.name, unix(now), query)

        def shown(texts: Mapping[str, str]) -> dict[str, str]:
            return {name: expand(text, seen, value, self.external, scene) for name, text in texts.items()}

        plain = {name: text for name, text in labels if name != NAME}
        own = shown({**group.labels, **rule.labels})
        return Alert(freeze({**plain, **own, "alertname": rule.name}), shown(rule.annotations), value, now)

    def alerts(self, states: Iterable[State] = ("pending", "firing")) -> list[dict[str, Any]]:
        """The alerts as plain data: labels, annotations, state, value, active_at, fired_at, keep_since (world seconds)."""
        self.flush()
        wanted = set(states)
        found = []
        for group in self.groups:
            for number in range(len(group.rules)):
                for alert in self._state(group, number).alerts.values():
                    if alert.state in wanted:
                        found.append({**asdict(alert), "labels": dict(alert.labels), "group": group.name})
        return found

    def save(self) -> dict[str, Any]:
        """Rules and states as plain data."""
        self.flush()
        states = {key: asdict(state) for key, state in self._states.items()}
        for saved in states.values():
            saved["alerts"] = [{**alert, "labels": dict(alert["labels"])} for alert in saved["alerts"].values()]
        groups = [{**asdict(group), "rules": [asdict(rule) for rule in group.rules]} for group in self.groups]
        evaluated = [[file, name, at] for (file, name), at in self._evaluated.items()]
        return {"groups": groups, "external": dict(self.external), "states": states, "evaluated": evaluated}

    @classmethod
    def load(cls, data: Mapping[str, Any], *, options: Options | None = None) -> "RuleEngine":
        """The inverse of `save`."""
        groups = [
            Group(**{**group, "rules": tuple(Rule(**rule) for rule in group["rules"])}) for group in data["groups"]
        ]
        engine = cls(groups, external=data["external"], options=options)
        engine._evaluated = {(file, name): at for file, name, at in data["evaluated"]}
        for key, saved in data["states"].items():
            alerts = [Alert(**{**alert, "labels": freeze(alert["labels"])}) for alert in saved["alerts"]]
            engine._states[key] = RuleState(**{**saved, "alerts": {alert.labels: alert for alert in alerts}})
        return engine


def _step(alert: Alert, rule: Rule, now: float, *, holds: bool) -> bool:
    """Move one alert to `now`; False when it can be forgotten."""
    if not holds:
        keeps = False
        if alert.state == "firing" and rule.keep_firing_for_s > 0:
            if alert.keep_since == NEVER:
                alert.keep_since = now
            keeps = now - alert.keep_since < rule.keep_firing_for_s
        if not keeps:
            if alert.state == "pending" or (alert.resolved_at > NEVER and now - alert.resolved_at > RESOLVED_KEPT_S):
                return False
            if alert.state != "inactive":
                alert.state, alert.resolved_at = "inactive", now
            return True
    if alert.state == "pending" and now - alert.active_at >= rule.for_s:
        alert.state, alert.fired_at = "firing", now
    return True


def _alert_samples(alerts: Iterable[Alert]) -> dict[Labels, float]:
    """The `ALERTS` and `ALERTS_FOR_STATE` series."""
    samples: dict[Labels, float] = {}
    for alert in alerts:
        if alert.state != "inactive":
            labels = dict(alert.labels)
            samples[freeze({**labels, NAME: "ALERTS", "alertstate": alert.state})] = 1.0
            samples[freeze({**labels, NAME: "ALERTS_FOR_STATE"})] = float(int(unix(alert.active_at)))
    return samples


def _in_order(groups: Sequence[Group]) -> bool:
    """Whether no rule reads what itself or a later rule writes, so that each rule can be evaluated for many moments at once."""
    written: set[str] = set()
    for group in reversed(groups):
        for rule in reversed(group.rules):
            if rule.kind == "recording":
                written.add(rule.name)
            if "ALERTS" in rule.expr or any(name in rule.expr for name in written):
                return False
    return True


_OF_THE_WHOLE = re.compile(r"@\s*(start|end)\b")


def _results(
    store: MetricStore, expr: str, times: Sequence[float], options: Options
) -> list[dict[Labels, float] | QueryError]:
    """What an expression gives at each moment."""
    if len(times) > 1 and _OF_THE_WHOLE.search(expr):
        return [each for now in times for each in _results(store, expr, [now], options)]
    try:
        vector = query_steps(store, expr, times, options)
    except QueryError as error:
        if len(times) == 1:
            return [error]
        return [each for now in times for each in _results(store, expr, [now], options)]
    found: list[dict[Labels, float] | QueryError] = []
    some = somewhere(vector.present).tolist()
    for step in range(len(times)):
        rows = np.flatnonzero(vector.present[:, step]).tolist() if some[step] else []
        found.append({vector.labels[row]: float(vector.values[row, step]) for row in rows})
    return found


def _write(store: MetricStore, name: str, samples: Mapping[Labels, float], now: float) -> None:
    """Append one row; series that are not there any more end."""
    block = store.find(name) or store.block(name, [])
    if now <= block.newest or (not samples and not _is_alive(block)):
        return
    known = set(block.labels)
    fresh = [dict(labels) for labels in samples if labels not in known]
    if fresh:
        block.extend(fresh)
    values = np.array([samples.get(labels, np.nan) for labels in block.labels], dtype=float)
    for column, labels in enumerate(block.labels):
        if labels in samples and isnan(samples[labels]):
            values[column] = NAN
    block.append(now, values)


def _is_alive(block: Block) -> bool:
    """Whether the last row has a sample."""
    if not len(block.times):
        return False
    last = np.ascontiguousarray(block.values[-1])
    return bool((~is_absent(last) & ~is_stale(last)).any())


def firing_spans(store: MetricStore, start: float, end: float) -> list[tuple[dict[str, str], float, float | None]]:
    """When alerts fired: (labels, first, last) in world seconds; last is None for those that still fire at `end`.

    Source: the recorded `ALERTS{alertstate="firing"}` series.
    """
    spans: list[tuple[dict[str, str], float, float | None]] = []
    matchers = [Matcher(NAME, "=", "ALERTS"), Matcher("alertstate", "=", "firing")]
    for chunk in store.select(matchers, start, end):
        alive = ~is_absent(chunk.v) & ~is_stale(chunk.v)
        for column, labels in enumerate(chunk.labels):
            shown = {name: value for name, value in labels if name not in (NAME, "alertstate")}
            edges = np.flatnonzero(np.diff(np.concatenate([[False], alive[:, column], [False]]).astype(int)))
            for first, after in edges.reshape(-1, 2):
                last = float(chunk.t[after]) if after < len(chunk.t) else None
                spans.append((shown, float(chunk.t[first]), last))
    return sorted(spans, key=lambda span: (span[1], sorted(span[0].items())))


__all__ = ["Alert", "Group", "Rule", "RuleEngine", "RuleState", "firing_spans", "groups_from_objects", "parse_groups"]
