"""Unit tests of rule files in the notation of `promtool test rules`: given series, expected alerts and values of queries.

Used by `itbench telemetry --test`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose, isnan
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from itbench.core.clock import from_unix
from itbench.core.errors import UsageError
from itbench.telemetry.labels import NAME, Labels, freeze
from itbench.telemetry.metrics import NAN, STALE, MetricStore, is_absent
from itbench.telemetry.openmetrics import RETENTION_S, parse_series
from itbench.telemetry.promql import QueryError, query_instant
from itbench.telemetry.promql.gotext import parse_duration_ns
from itbench.telemetry.recorded import read_rules
from itbench.telemetry.rule_files import Group
from itbench.telemetry.rules import RuleEngine

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?[Ii]nf|NaN"
_RUN = re.compile(rf"({_NUMBER})(?:([+-])(\d+\.?\d*(?:[eE][+-]?\d+)?))?x(\d+)")
_PLAIN = re.compile(_NUMBER)
_GAP = re.compile(r"_(?:x(\d+))?")
MAX_VALUES = 1_000_000
"""Values of a series that a test may ask for."""


def expand_values(text: str) -> list[float]:
    """The values of `1 2 _ 3+1x4 stale`: a gap is a plain NaN, the end of a series the staleness marker.

    Raises:
        UsageError: names the part that is not understood.
    """
    values: list[float] = []
    for part in text.split():
        gap, run = _GAP.fullmatch(part), _RUN.fullmatch(part)
        if gap is not None:
            values += [np.nan] * _times(gap[1] or "1", part)
        elif part == "stale":
            values.append(STALE)
        elif _PLAIN.fullmatch(part):
            values.append(_sample(float(part)))
        elif run is not None:
            first, step = float(run[1]), float(run[3] or 0) * (-1 if run[2] == "-" else 1)
            values += [_sample(first + step * number) for number in range(_times(run[4], part) + 1)]
        else:
            raise UsageError("not a value of a series", seen=part, expected="1, 1+2x3, 1x3, _, _x3 or stale")
    return values


def _times(text: str, part: str) -> int:
    if int(text) > MAX_VALUES:
        raise UsageError("too many values in a series", seen=part, expected=f"at most {MAX_VALUES}")
    return int(text)


def _sample(value: float) -> float:
    return NAN if isnan(value) else value


def _seconds(value: object, where: str) -> float:
    try:
        return parse_duration_ns(str(value)) / 1e9
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error


def _store(series: Sequence[Mapping[str, Any]], interval_s: float) -> MetricStore:
    """The given series, the first value at Unix time 0."""
    store = MetricStore(RETENTION_S)
    for number, each in enumerate(series):
        labels, values = parse_series(str(each.get("series", ""))), expand_values(str(each.get("values", "")))
        block = store.block(f"given/{number}", [dict(labels)])
        there = ~is_absent(np.array(values, dtype=float))
        for row in np.flatnonzero(there).tolist():
            block.append(from_unix(row * interval_s), np.array([values[row]]), mark=False)
    return store


@dataclass(frozen=True)
class _Check:
    """One expectation: when, and what is looked at then."""

    at_s: float
    kind: str
    data: Mapping[str, Any]


def _checks(test: Mapping[str, Any]) -> list[_Check]:
    found = [
        _Check(_seconds(each.get("eval_time", "0"), "eval_time"), kind, each)
        for kind in ("alert_rule_test", "promql_expr_test")
        for each in test.get(kind) or []
    ]
    return sorted(found, key=lambda check: check.at_s)


def _run(test: Mapping[str, Any], groups: Sequence[Group], interval_s: float) -> Iterator[str]:
    """The failures of one test."""
    store = _store(test.get("input_series") or [], _seconds(test.get("interval", "1m"), "interval") or interval_s)
    external = {str(name): str(value) for name, value in (test.get("external_labels") or {}).items()}
    engine = RuleEngine(groups, external=external)
    place = 0
    for check in _checks(test):
        while place * interval_s <= check.at_s:
            engine.evaluate(from_unix(place * interval_s), store)
            place += 1
        engine.flush()
        expect = _expect_alerts if check.kind == "alert_rule_test" else _expect_samples
        yield from expect(check, engine, store)


def _expect_alerts(check: _Check, engine: RuleEngine, _: MetricStore) -> Iterator[str]:
    name = str(check.data.get("alertname", ""))
    wanted = [
        (
            freeze({str(k): str(v) for k, v in (each.get("exp_labels") or {}).items()} | {"alertname": name}),
            {str(k): str(v) for k, v in (each.get("exp_annotations") or {}).items()},
        )
        for each in check.data.get("exp_alerts") or []
    ]
    got = [
        (freeze(each["labels"]), dict(each["annotations"]))
        for each in engine.alerts(("firing",))
        if each["labels"]["alertname"] == name
    ]
    first, second = (sorted(side, key=lambda pair: pair[0]) for side in (wanted, got))
    if first != second:
        yield f"alertname: {name}, time: {check.at_s:g}s\n  exp: {_alerts(first)}\n  got: {_alerts(second)}"


def _alerts(pairs: Sequence[tuple[Labels, Mapping[str, str]]]) -> str:
    return str([{"labels": dict(labels), "annotations": dict(texts)} for labels, texts in pairs])


def _expect_samples(check: _Check, _: RuleEngine, store: MetricStore) -> Iterator[str]:
    expr = str(check.data.get("expr", ""))
    where = f"expr: {expr!r}, time: {check.at_s:g}s"
    try:
        result = query_instant(store, expr, from_unix(check.at_s))
    except QueryError as error:
        yield f"{where}\n  err: {error}"
        return
    got = {each.labels: float(each.v[-1]) for each in result.series}
    wanted = {
        _labels(str(each.get("labels", ""))): float(each.get("value", 0))
        for each in check.data.get("exp_samples") or []
    }
    same = got.keys() == wanted.keys() and all(_close(got[key], wanted[key]) for key in wanted)
    if not same:
        shown = ({str(dict(key)): value for key, value in sorted(side.items())} for side in (wanted, got))
        yield "{}\n  exp: {}\n  got: {}".format(where, *shown)


def _labels(text: str) -> Labels:
    """Labels in the notation of series, the name left out or not."""
    named = text.strip()
    if named in ("", "{}"):
        return ()
    if named.startswith("{") and "__name__" not in named:
        return tuple(pair for pair in parse_series(f"x{named}") if pair[0] != NAME)
    return parse_series(named)


def _close(left: float, right: float) -> bool:
    return (isnan(left) and isnan(right)) or isclose(left, right, rel_tol=1e-9)


def run_tests(path: Path) -> list[str]:
    """The failures of the tests in a file; none where all pass.

    Raises:
        UsageError: the file, or a rule file that it names, cannot be read.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict):
        raise UsageError(f"{path}: not a test file", expected="rule_files: [...], tests: [...]")
    files = [file for name in document.get("rule_files") or [] for file in sorted(path.parent.glob(str(name)))]
    interval_s = _seconds(document.get("evaluation_interval", "1m"), f"{path}: evaluation_interval") or 60.0
    groups = [replace(group, interval_s=interval_s) for group in read_rules(files)]
    failures: list[str] = []
    for number, test in enumerate(document.get("tests") or [], start=1):
        name = test.get("name") or f"test {number}"
        try:
            failures += [f"{name}: {failure}" for failure in _run(test, groups, interval_s)]
        except UsageError as error:
            raise UsageError(f"{path}: {name}: {error}") from error
    return failures
