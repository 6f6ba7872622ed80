"""Unit tests of rules pass and fail as with promtool, whose version 2.42 passes the test file below."""

from pathlib import Path

import numpy as np
import pytest

from itbench.cli.main import main
from itbench.core.errors import UsageError
from itbench.telemetry.metrics import NAN, is_absent, is_stale
from itbench.telemetry.rule_tests import expand_values, run_tests

RULES = """\
groups:
- name: a
  rules:
  - record: job:requests:rate5m
    expr: sum by (job) (rate(requests_total[5m]))
  - alert: Down
    expr: up == 0
    for: 5m
    labels: {severity: page}
    annotations: {summary: "{{ $labels.instance }} of {{ $labels.job }} down ({{ $value }})"}
  - alert: Gone
    expr: absent(up{job="b"})
    keep_firing_for: 3m
"""
TEST = """\
rule_files: [rules.yaml]
evaluation_interval: 1m
tests:
- interval: 1m
  input_series:
  - series: 'up{job="a", instance="x:1"}'
    values: '1 1 0x9 1x4'
  - series: 'up{job="b", instance="y:1"}'
    values: '1x3 _x3 stale _x2 1x10'
  - series: 'requests_total{job="a"}'
    values: '0+60x30'
  - series: 'requests_total{job="b"}'
    values: '100-10x5 7 8 9'
  alert_rule_test:
  - eval_time: 6m
    alertname: Down
  - eval_time: 8m
    alertname: Down
    exp_alerts:
    - exp_labels: {severity: page, instance: "x:1", job: a}
      exp_annotations: {summary: "x:1 of a down (0)"}
  - eval_time: 13m
    alertname: Down
  - eval_time: 7m
    alertname: Gone
    exp_alerts:
    - exp_labels: {job: b}
  - eval_time: 10m
    alertname: Gone
    exp_alerts:
    - exp_labels: {job: b}
  - eval_time: 14m
    alertname: Gone
  promql_expr_test:
  - expr: job:requests:rate5m{job="a"}
    eval_time: 10m
    exp_samples:
    - labels: 'job:requests:rate5m{job="a"}'
      value: 1
  - expr: sum(up)
    eval_time: 0
    exp_samples:
    - labels: '{}'
      value: 2
  - expr: count_over_time(up{job="b"}[30m])
    eval_time: 20m
    exp_samples:
    - labels: '{job="b", instance="y:1"}'
      value: 15
"""


def _files(folder: Path, test: str, rules: str = RULES) -> Path:
    (folder / "rules.yaml").write_text(rules)
    (folder / "test.yaml").write_text(test)
    return folder / "test.yaml"


def test_what_is_as_expected_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _files(tmp_path, TEST)
    assert run_tests(path) == []
    assert main(["telemetry", "--test", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: SUCCESS\n"


@pytest.mark.parametrize(
    ("old", "new", "failure"),
    [
        ("down (0)", "down (1)", "test 1: alertname: Down, time: 480s"),
        ("value: 15", "value: 16", "test 1: expr: 'count_over_time(up{job=\"b\"}[30m])', time: 1200s"),
        ("eval_time: 8m", "eval_time: 6m30s", "test 1: alertname: Down, time: 390s"),
        ("expr: sum(up)", "expr: up / on() up", "test 1: expr: 'up / on() up', time: 0s"),
    ],
)
def test_what_is_otherwise_fails(tmp_path: Path, old: str, new: str, failure: str) -> None:
    path = _files(tmp_path, TEST.replace(old, new))
    (found,) = run_tests(path)
    assert found.startswith(failure)
    assert main(["telemetry", "--test", str(path)]) == 1


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("1 1 0x9 1x4", "1 1 zero", "not a value of a series: 'zero'"),
        ("interval: 1m\n  input", "interval: 1 minute\n  input", 'unknown unit " minute"'),
        ("expr: up == 0", "expr: up ==", "could not parse expression: 1:6: parse error: unexpected end of input"),
        ("0+60x30", "0+60x99999999", "too many values in a series"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path: Path, old: str, new: str, fault: str) -> None:
    with pytest.raises(UsageError) as caught:
        run_tests(_files(tmp_path, TEST.replace(old, new), RULES.replace(old, new)))
    assert fault in str(caught.value)


def test_values_are_written_short() -> None:
    values = np.array(expand_values("1 _ 2+1x2 _x2 5x1 3-2x1 stale NaN -Inf"))
    gaps = is_absent(values)
    assert gaps.tolist() == [False, True, False, False, False, True, True, *[False] * 7]
    assert values[~gaps][:8].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 3.0, 1.0]
    assert is_stale(values).tolist() == [*[False] * 11, True, False, False]
    assert values[12:13].tobytes() == np.array([NAN]).tobytes() and values[13] == -np.inf
