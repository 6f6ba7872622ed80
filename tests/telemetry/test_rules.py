"""Rules: alerts go from pending to firing and back as in Prometheus, and their state survives saving."""

from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itbench.core import codec
from itbench.core.clock import unix
from itbench.core.errors import UsageError
from itbench.telemetry.labels import Matcher
from itbench.telemetry.metrics import MetricStore
from itbench.telemetry.promql import query_instant
from itbench.telemetry.promql.gotext import show_g
from itbench.telemetry.rules import RuleEngine, firing_spans, groups_from_objects, parse_groups
from itbench.telemetry.templates import Sample, Scene, expand

STEP = 30.0


def document(**rule: Any) -> dict[str, Any]:
    return {"groups": [{"name": "g", "interval": "30s", "rules": [{"alert": "Down", "expr": "up == 0", **rule}]}]}


def run(
    engine: RuleEngine,
    values: list[float],
    store: MetricStore,
    between: Callable[[RuleEngine], RuleEngine] | None = None,
) -> list[list[str]]:
    """Evaluate once per value of `up`; returns the states after each evaluation."""
    block = store.block("a", [{"__name__": "up", "job": "x"}])
    states = []
    for row, value in enumerate(values):
        block.append(row * STEP, np.array([value]))
        engine.evaluate(row * STEP, store)
        states.append([alert["state"] for alert in engine.alerts()])
        engine = between(engine) if between else engine
    return states


def reloaded(engine: RuleEngine) -> RuleEngine:
    return RuleEngine.load(codec.loads(codec.dumps(engine.save())))


@pytest.mark.parametrize("between", [None, reloaded])
def test_an_alert_waits_fires_and_ends(between: Any) -> None:
    store = MetricStore()
    engine = RuleEngine(parse_groups(document(**{"for": "1m"})))
    states = run(engine, [1, 0, 0, 0, 0, 1, 1], store, between)
    assert states == [[], ["pending"], ["pending"], ["firing"], ["firing"], [], []]
    assert firing_spans(store, 0.0, 1000.0) == [({"alertname": "Down", "job": "x"}, 90.0, 150.0)]


def test_a_short_fault_never_fires_and_counts_anew() -> None:
    engine = RuleEngine(parse_groups(document(**{"for": "1m"})))
    assert run(engine, [0, 0, 1, 0, 0, 0], MetricStore())[-3:] == [["pending"], ["pending"], ["firing"]]


def test_an_alert_without_for_fires_at_once() -> None:
    assert run(RuleEngine(parse_groups(document())), [0, 1], MetricStore()) == [["firing"], []]


def test_keep_firing_for_holds_an_alert_after_its_cause_is_gone() -> None:
    engine = RuleEngine(parse_groups(document(keep_firing_for="1m")))
    assert run(engine, [0, 1, 1, 1, 1], MetricStore()) == [["firing"], ["firing"], ["firing"], [], []]


def test_alerts_series_tell_state_and_begin_and_end_stale() -> None:
    store = MetricStore()
    run(RuleEngine(parse_groups(document(**{"for": "30s", "labels": {"severity": "page"}}))), [0, 0, 1], store)
    at = {t: query_instant(store, "ALERTS", t).values() for t in (0.0, 30.0, 60.0)}
    (pending,) = at[0.0]
    assert dict(pending) == {
        "__name__": "ALERTS", "alertname": "Down", "alertstate": "pending", "job": "x", "severity": "page",
    }  # fmt: skip
    assert [dict(labels)["alertstate"] for labels in at[30.0]] == ["firing"]
    assert at[60.0] == {}
    assert list(query_instant(store, "ALERTS_FOR_STATE", 30.0).values().values()) == [unix(0.0)]


def test_recorded_series_can_be_used_by_the_next_rule_of_the_group() -> None:
    rules = [
        {"record": "a:b", "expr": "up * 2", "labels": {"by": "rule"}},
        {"alert": "Two", "expr": 'a:b{by="rule"} == 2'},
    ]
    store = MetricStore()
    states = run(RuleEngine(parse_groups({"groups": [{"name": "g", "rules": rules}]})), [0, 1], store)
    assert states == [[], ["firing"]]
    assert query_instant(store, "a:b", 30.0).values() == {(("__name__", "a:b"), ("by", "rule"), ("job", "x")): 2.0}


def test_a_recorded_nan_is_a_sample() -> None:
    store = MetricStore()
    rules = [{"record": "a:b", "expr": "up / up"}]
    run(RuleEngine(parse_groups({"groups": [{"name": "g", "rules": rules}]})), [0, 0], store)
    assert np.isnan(list(query_instant(store, "a:b", 30.0).values().values())).tolist() == [True]


def test_groups_are_evaluated_at_their_own_interval() -> None:
    engine = RuleEngine(
        parse_groups({"groups": [{"name": n, "interval": i, "rules": []} for n, i in (("a", "15s"), ("b", "1m"))]})
    )
    assert engine.due() == -inf
    store = MetricStore()
    seen = []
    for now in (0.0, 15.0, 30.0, 45.0, 60.0):
        engine.evaluate(now, store)
        seen.append([engine.evaluated_at(group) for group in engine.groups])
    assert seen == [[0, 0], [15, 0], [30, 0], [45, 0], [60, 60]]
    assert engine.due() == 75.0


def test_rules_loaded_anew_keep_the_alerts_of_rules_that_stay() -> None:
    store = MetricStore()
    engine = RuleEngine(parse_groups(document()))
    run(engine, [0], store)
    extra = document()
    extra["groups"][0]["rules"].append({"alert": "Other", "expr": "up == 0"})
    engine.set_groups(parse_groups(extra))
    assert [alert["labels"]["alertname"] for alert in engine.alerts()] == ["Down"]
    engine.set_groups(parse_groups(document(expr="up != 1")))
    assert engine.alerts() == []


def test_a_rule_that_fails_says_so_and_harms_no_other() -> None:
    store = MetricStore()
    rules = [{"alert": "Bad", "expr": "up * on() group_left() {job=~'.+'}"}, {"alert": "Good", "expr": "up == 0"}]
    store.block("b", [{"__name__": "down", "job": "x"}]).append(0.0, np.array([1.0]))
    engine = RuleEngine(parse_groups({"groups": [{"name": "g", "rules": rules}]}))
    assert run(engine, [0], store) == [["firing"]]
    bad = engine.state(engine.groups[0], 0)
    assert bad.health == "err" and "many-to-many matching not allowed" in bad.error


PUT_OFF = [
    [{"alert": "Down", "expr": "up == 0", "for": "1m", "keep_firing_for": "30s"}, {"record": "a:b", "expr": "sum(up)"}],
    [{"record": "a:b", "expr": "sum by (job) (up)"}, {"alert": "Low", "expr": "a:b < 1 or absent(up)", "for": "30s"}],
    [{"alert": "Early", "expr": "a:b == 1"}, {"record": "a:b", "expr": "sum(up)"}],
    [{"record": "a:b", "expr": "(a:b or vector(0)) + 1"}],
    [
        {"alert": "Two", "expr": "up * on() group_left() up == 1"},
        {"alert": "Same", "expr": "changes(up[2m]) > scalar(up @ end())"},
    ],
    [{"alert": "Meta", "expr": 'count(ALERTS{alertstate="firing"}) > 0'}, {"alert": "Down", "expr": "up == 0"}],
]


@pytest.mark.parametrize("rules", PUT_OFF)
@settings(max_examples=25)
@given(
    values=st.lists(st.sampled_from([0.0, 1.0, nan]), min_size=1, max_size=25),
    looks=st.sets(st.integers(0, 25), max_size=4),
)
def test_work_that_was_put_off_has_the_results_of_work_done_at_once(
    rules: list[dict[str, Any]], values: list[float], looks: set[int]
) -> None:
    outcomes = []
    for eager in (True, False):
        store, engine = MetricStore(), RuleEngine(parse_groups({"groups": [{"name": "g", "rules": rules}]}))
        block = store.block("a", [{"__name__": "up", "job": "x"}])
        for row, value in enumerate(values):
            block.append(row * STEP, np.array([value]))
            engine.evaluate(row * STEP, store)
            if eager or row in looks:
                engine.alerts()
        outcomes.append(codec.dumps([store.save(), engine.save()]))
    assert outcomes[0] == outcomes[1]


def test_who_looks_at_the_store_sees_what_was_put_off() -> None:
    store = MetricStore()
    engine = RuleEngine(parse_groups(document()))
    store.block("a", [{"__name__": "up", "job": "x"}]).append(0.0, np.array([0.0]))
    engine.evaluate(0.0, store)
    assert len(store.series([Matcher("__name__", "=", "ALERTS")])) == 1


WRONG = [
    ({"groups": [{"rules": []}]}, "group without a name"),
    ({"groups": [{"name": "a", "rules": []}, {"name": "a", "rules": []}]}, "repeated"),
    ({"groups": [{"name": "a", "rules": [{"expr": "up"}]}]}, "exactly one of record and alert"),
    ({"groups": [{"name": "a", "rules": [{"alert": "A", "expr": "up =="}]}]}, "could not parse expression"),
    ({"groups": [{"name": "a", "rules": [{"alert": "A", "expr": "up", "for": "soon"}]}]}, "not a duration"),
    ({"groups": [{"name": "a", "rules": [{"record": "a", "expr": "up", "for": "1m"}]}]}, "invalid field"),
    ({"groups": [{"name": "a", "rules": [{"record": "a-b", "expr": "up"}]}]}, "invalid recording rule name"),
    ({"groups": [{"name": "a", "rules": [{"alert": "A", "expr": "up", "four": "1m"}]}]}, "unknown field: 'four'"),
]


@pytest.mark.parametrize(("data", "text"), WRONG)
def test_wrong_rules_are_named(data: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        parse_groups(data)


def test_prometheus_rule_objects_become_groups_and_a_wrong_one_harms_no_other() -> None:
    def rule(namespace: str, name: str, expr: str) -> dict[str, Any]:
        spec = document(expr=expr)
        return {"kind": "PrometheusRule", "metadata": {"namespace": namespace, "name": name}, "spec": spec}

    groups, problems = groups_from_objects([rule("shop", "b", "up == 0"), rule("shop", "a", "up ==")])
    assert [(group.file, group.name) for group in groups] == [("/etc/prometheus/rules/shop-b.yaml", "g")]
    assert list(problems) == [("shop", "a")]


TEMPLATES = [
    ("{{ $labels.pod }} at {{ $value }}", "cart-1 at 0.25"),
    ("{{ .Labels.pod }}: {{ .Value | humanizePercentage }}", "cart-1: 25%"),
    ("{{ $labels.missing }}!", "!"),
    ('{{ printf "%.2f" $value }} of {{ printf "%s" $labels.pod }}', "0.25 of cart-1"),
    ("{{ $value | humanize }} {{ 1536000 | humanize1024 }}", "250m 1.465Mi"),
    ("{{ humanizeDuration 3725 }} {{ humanizeDuration 0.0025 }}", "1h 2m 5s 2.5ms"),
    ('{{ $labels.pod | toUpper | printf "<%s>" }}', "<CART-1>"),
    ('{{ reReplaceAll "-(.*)" "/$1" $labels.pod }}', "cart/1"),
    ('{{ (printf "%d" 3) }}{{- " x" }}', "3 x"),
    ("a {{- /* note */ -}} b", "ab"),
    ("{{ humanizeTimestamp 1768204800.5 }}", "2026-01-12 08:00:00.5 +0000 UTC"),
    ("{{ $externalLabels.cluster }}", "main"),
    ("no template", "no template"),
    ('{{ 1e21 }} {{ 0.00001 }} {{ "a" | printf "%5s|" }}', "1e+21 1e-05     a|"),
]


@pytest.mark.parametrize(("template", "text"), TEMPLATES)
def test_templates_expand_as_in_prometheus(template: str, text: str) -> None:
    assert expand(template, {"pod": "cart-1"}, 0.25, {"cluster": "main"}) == text


def _recorded_templates() -> list[tuple[int, str, str]]:
    lines = (Path(__file__).parent / "promql" / "templates.jsonl").read_bytes().splitlines()
    return [(n, each["template"], each["text"]) for n, each in enumerate(map(orjson.loads, lines))]


@pytest.mark.parametrize(("number", "template", "text"), _recorded_templates())
def test_templates_expand_as_the_real_prometheus_did(number: int, template: str, text: str) -> None:
    def query(expr: str) -> list[Sample]:
        found = query_instant(MetricStore(), expr, 0.0).series
        return [Sample(dict(each.labels), float(each.v[-1])) for each in found]

    labels = {"pod": "cart-1", "team": "a"}
    assert expand(template, labels, 1234.5, {"cluster": "main"}, Scene(f"A{number}", 0.0, query)) == text


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ foo }}", 'function "foo" not defined'),
        ("{{ $nope }}", 'undefined variable "$nope"'),
        ("{{ if true }}x", "unexpected EOF"),
        ("{{ end }}", "unexpected {{end}}"),
        ("{{ if }}x{{ end }}", "missing value for if"),
        ('{{ "x', "unterminated quoted string"),
        ("{{ 1", "unclosed action"),
    ],
)
def test_a_template_that_cannot_be_parsed_is_refused_with_its_rule(template: str, text: str) -> None:
    rule = {"alert": "Down", "expr": "up", "annotations": {"summary": template}}
    with pytest.raises(UsageError) as caught:
        parse_groups({"groups": [{"name": "g", "rules": [rule]}]})
    assert str(caught.value).endswith(f'annotation "summary": template: __alert_Down:1: {text}')


def test_a_template_asks_the_store_at_the_time_of_its_alert() -> None:
    store = MetricStore()
    block = store.block("b", [{"__name__": "up"}, {"__name__": "load", "host": "a"}])
    for row in range(5):
        block.append(30.0 * row, np.array([0.0, float(row)]))
    summary = '{{ range query "load" }}{{ .Labels.host }}={{ .Value }}{{ end }} {{ $labels.__name__ }}'
    rule = {"alert": "Down", "expr": "up == 0", "annotations": {"summary": summary}}
    engine = RuleEngine(parse_groups({"groups": [{"name": "g", "interval": "30s", "rules": [rule]}]}))
    for row in range(3):
        engine.evaluate(30.0 * row, store)
    assert engine.alerts()[0]["annotations"] == {"summary": "a=2 up"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (999999.0, "999999"),
        (123456789.0, "1.23456789e+08"),
        (-1e20, "-1e+20"),
        (1e21, "1e+21"),
        (1e-5, "1e-05"),
        (0.0001, "0.0001"),
        (nan, "NaN"),
        (inf, "+Inf"),
    ],
)
def test_values_are_printed_as_go_prints_them(value: float, text: str) -> None:
    assert show_g(value) == text
