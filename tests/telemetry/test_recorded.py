"""Recorded files become stores and logs; the clock stands at their end; rules are evaluated as if they had been there."""

import gzip
from pathlib import Path

import pytest

from itbench.core.clock import from_unix, unix
from itbench.core.errors import UsageError
from itbench.telemetry.promql import query_instant
from itbench.telemetry.recorded import RecordedClock, evaluate_rules, read_files, read_rules

T0 = 1_600_000_000
RULES = """
groups:
- name: a
  interval: 30s
  rules:
  - record: job:up:sum
    expr: sum by (job) (up)
  - alert: Down
    expr: up == 0
    for: 1m
    keep_firing_for: 90s
"""


def _metrics(path: Path) -> Path:
    values = [1] * 10 + [0] * 10 + [1] * 20
    lines = [f'up{{job="a"}} {value} {T0 + 30 * row}' for row, value in enumerate(values)]
    path.write_text("\n".join([*lines, "# EOF", ""]))
    return path


def test_alerts_of_a_recording_from_before_the_world_began_go_through_their_states(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    recording = read_files([_metrics(tmp_path / "m.om")])
    evaluate_rules(read_rules([tmp_path / "rules.yaml"]), recording.metrics)

    def state(row: int) -> str:
        found = query_instant(recording.metrics, "ALERTS", from_unix(T0 + 30.0 * row)).series
        return dict(found[0].labels)["alertstate"] if found else ""

    assert [state(row) for row in (9, 10, 11, 12, 19, 22, 23, 30)] == [
        "", "pending", "pending", "firing", "firing", "firing", "", "",
    ]  # fmt: skip
    recorded = query_instant(recording.metrics, "job:up:sum", from_unix(T0 + 30.0 * 15)).series
    assert [(dict(each.labels)["job"], each.v.tolist()) for each in recorded] == [("a", [0.0])]


def test_packed_files_and_logs_are_read(tmp_path: Path) -> None:
    packed = tmp_path / "m.om.gz"
    packed.write_bytes(gzip.compress(_metrics(tmp_path / "m.om").read_bytes()))
    logs = tmp_path / "l.jsonl"
    logs.write_text(
        f'{{"timestamp": {T0 + 2}, "labels": {{"app": "x"}}, "line": "second"}}\n\n'
        f'{{"timestamp": "{(T0 + 1) * 10**9}", "labels": {{"app": "x"}}, "line": "first"}}\n'
        '{"timestamp": "2020-09-13T12:26:43Z", "labels": {"app": "x"}, "line": "third"}\n'
    )
    recording = read_files([packed, logs])
    assert recording.samples == 40 and recording.logs.count == 3
    (stream,) = recording.logs.streams(from_unix(T0), from_unix(T0 + 10))
    assert list(stream.lines(from_unix(T0), from_unix(T0 + 3))) == [
        (from_unix(T0 + 1), "first"), (from_unix(T0 + 2), "second"),
    ]  # fmt: skip
    assert recording.end == from_unix(T0 + 30 * 39)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{", "l.jsonl:1: not JSON"),
        ('{"line": "x"}', "l.jsonl:1: not a log line"),
        ('{"labels": {}, "line": "x", "timestamp": "soon"}', "l.jsonl:1: the timestamp is no time"),
    ],
)
def test_a_wrong_log_line_is_named(tmp_path: Path, line: str, fault: str) -> None:
    (tmp_path / "l.jsonl").write_text(line)
    with pytest.raises(UsageError) as caught:
        read_files([tmp_path / "l.jsonl"])
    assert fault in str(caught.value)


def test_files_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "b.om").write_bytes(b"\xff\xfe")
    (tmp_path / "g.gz").write_bytes(b"nothing packed")
    for name in ("none.om", "b.om", "g.gz"):
        with pytest.raises(UsageError) as caught:
            read_files([tmp_path / name])
        assert "\n" not in str(caught.value) and name in str(caught.value)


def test_wrong_rules_are_named(tmp_path: Path) -> None:
    for text, fault in (
        ("- x", "not a rule file"),
        ("groups: [", "not YAML"),
        ("groups: [{name: a, rule: 1}]", "unknown field"),
    ):
        (tmp_path / "r.yaml").write_text(text)
        with pytest.raises(UsageError, match=fault):
            read_rules([tmp_path / "r.yaml"])


def test_the_clock_stands_at_the_end_or_runs_from_there() -> None:
    standing = RecordedClock(100.0)
    assert (standing.now(), standing.to_wire(40.0), standing.from_wire(unix(40.0))) == (100.0, unix(40.0), 40.0)
    wall = [5000.25]
    running = RecordedClock(100.0, lambda: wall[0])
    assert running.to_wire(100.0) == 5000.0
    wall[0] += 7.0
    assert running.now() == pytest.approx(107.25)
    assert running.from_wire(running.to_wire(3.0)) == 3.0
