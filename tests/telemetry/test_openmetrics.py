"""OpenMetrics text becomes series, sample by sample; what is wrong with it is said with the number of the line."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.core.clock import from_unix
from itbench.core.errors import UsageError
from itbench.telemetry.labels import Matcher, freeze
from itbench.telemetry.metrics import MetricStore, is_absent
from itbench.telemetry.openmetrics import Reader, parse_series
from itbench.telemetry.promql import query_instant


def read(*lines: str, end: bool = True) -> Reader:
    reader = Reader()
    reader.read("file.om", [*lines, *(["# EOF"] if end else [])])
    return reader


def samples(store: MetricStore) -> dict[Any, dict[float, float]]:
    """All samples by series and time."""
    found: dict[Any, dict[float, float]] = {}
    for block in store.blocks():
        values = np.ascontiguousarray(block.values)
        for row, column in np.argwhere(~is_absent(values)):
            found.setdefault(block.labels[column], {})[float(block.times[row])] = float(values[row, column])
    return found


NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from('\n"\\{}, #='), max_size=8)
VALUES = st.floats(width=64)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@given(
    st.dictionaries(
        st.tuples(NAMES, st.dictionaries(NAMES.map(lambda name: "l" + name), TEXTS, max_size=3).map(freeze)),
        st.dictionaries(st.integers(0, 10**12), VALUES, min_size=1, max_size=6),
        max_size=6,
    )
)
def test_what_is_written_is_read_again(series: dict[Any, dict[int, float]]) -> None:
    lines = []
    expected: dict[Any, dict[float, float]] = {}
    for (name, labels), points in series.items():
        inner = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels)
        for moment in sorted(points):
            shown = "NaN" if math.isnan(points[moment]) else repr(points[moment])
            lines.append(f"{name}{{{inner}}} {shown} {moment / 1000}")
            key = freeze({**dict(labels), "__name__": name})
            expected.setdefault(key, {})[from_unix(moment / 1000)] = points[moment]
    found = samples(read(*lines).store())
    assert found.keys() == expected.keys()
    for key, points_of in expected.items():
        assert found[key].keys() == points_of.keys()
        assert all(np.array_equal(found[key][t], value, equal_nan=True) for t, value in points_of.items())


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("up", {"__name__": "up"}),
        ("up{}", {"__name__": "up"}),
        ('up{a="b",}', {"__name__": "up", "a": "b"}),
        ('up{a="x y",b="}"}', {"__name__": "up", "a": "x y", "b": "}"}),
        ('{"my.metric","http.method"="GET"}', {"__name__": "my.metric", "http.method": "GET"}),
        ('{"my.metric"}', {"__name__": "my.metric"}),
        ('{__name__="up",a=""}', {"__name__": "up"}),
        (r'up{a="\\n\n\""}', {"__name__": "up", "a": '\\n\n"'}),
    ],
)
def test_series_are_read_in_both_notations(text: str, labels: dict[str, str]) -> None:
    assert parse_series(text) == freeze(labels)


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (["up 1 5", "up"], "file.om:2: not a sample"),
        (["up 1"], "file.om:1: a sample without a timestamp"),
        (["up x 5"], "file.om:1: the value is not a number"),
        (["up 1_0 5"], "file.om:1: the value is not a number"),
        (["up 1 5s"], "file.om:1: the timestamp is not a number"),
        (["up 1 NaN"], "file.om:1: the timestamp is out of range"),
        (["up 1 5", "up 1 5"], "file.om:2: two samples of a series at one time"),
        (["up 1 5", 'down{a="b"} 1 5', "up 1 4"], "file.om:3: the series goes back in time"),
        (['up{a="b} 1 5'], "file.om:1: not a sample"),
        (['up{a="b",a="c"} 1 5'], "file.om:1: a label stands twice"),
        (["up{a=b} 1 5"], "file.om:1: labels are not well formed"),
        (['{a="b"} 1 5'], "file.om:1: a series without a name"),
        (["# TYPE up thing"], "file.om:1: unknown type of up"),
        (["# hello"], "file.om:1: not a comment of OpenMetrics"),
        (["# EOF", "up 1 5"], "file.om:2: text after # EOF"),
    ],
)
def test_a_fault_is_named_with_its_line(lines: list[str], fault: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(*lines)
    assert str(caught.value).startswith(fault)


def test_a_file_that_was_cut_off_is_refused() -> None:
    with pytest.raises(UsageError, match="does not end with # EOF"):
        read("up 1 5", end=False)


def test_types_and_help_are_metadata() -> None:
    reader = read("# TYPE up gauge", r"# HELP up Alive\nor not.", "# UNIT up seconds", "up 1 5")
    assert reader.store().metadata == {"up": {"type": "gauge", "help": "Alive\nor not.", "unit": "seconds"}}


def test_exemplars_are_left_out() -> None:
    store = read('hits_total{a="b"} 3 5 # {trace_id="1 2"} 0.5 4', 'hits_total{a="b"} 4 6').store()
    assert list(samples(store).values()) == [{from_unix(5.0): 3.0, from_unix(6.0): 4.0}]


def test_files_are_joined_and_the_later_wins() -> None:
    reader = Reader()
    reader.read("one", ["up 1 5", "up 2 7", "# EOF"])
    reader.read("two", ["up 3 6", "up 4 7", "# EOF"])
    assert list(samples(reader.store()).values()) == [{from_unix(5.0): 1.0, from_unix(6.0): 3.0, from_unix(7.0): 4.0}]


def test_a_series_with_gaps_shares_the_block_of_those_it_was_scraped_with() -> None:
    lines = [f'up{{n="{n}"}} {n} {t}' for n in range(3) for t in range(0, 60, 10) if not (n == 1 and t == 20)]
    store = read(*lines).store()
    assert len(list(store.blocks())) == 1
    gap = query_instant(store, 'count_over_time(up{n="1"}[1h])', from_unix(100.0))
    assert gap.series[0].v.tolist() == [5.0]


def test_old_samples_are_never_forgotten() -> None:
    store = read("up 1 5", "up 2 4102444800").store()
    assert len(store.select([Matcher("__name__", "=", "up")], from_unix(0.0), from_unix(10.0))) == 1
