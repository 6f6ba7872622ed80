"""The metric store keeps what was appended, finds it by labels, and survives saving."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.core import codec
from itbench.core.errors import UsageError
from itbench.telemetry.labels import Index, Matcher, freeze
from itbench.telemetry.metrics import NAN, MetricStore, is_absent, is_stale


def series(*pods: str) -> list[dict[str, str]]:
    return [{"__name__": "up", "pod": pod} for pod in pods]


def test_appended_rows_come_back_in_the_interval_asked_for() -> None:
    store = MetricStore()
    block = store.block("kubelet/a", series("a", "b"))
    for row in range(100):
        block.append(15.0 * row, np.array([row, -row], dtype=float))
    (chunk,) = store.select([Matcher("pod", "=", "b")], 30.0, 60.0)
    assert chunk.t.tolist() == [30, 45, 60]
    assert chunk.v.tolist() == [[-2], [-3], [-4]]


def test_a_series_that_a_scrape_lacks_is_marked_stale_once() -> None:
    store = MetricStore()
    block = store.block("a", series("a", "b"))
    for t, value in enumerate((1.0, np.nan, np.nan, 2.0)):
        block.append(float(t), np.array([0.0, value]))
    column = np.ascontiguousarray(block.values[:, 1])
    assert is_stale(column).tolist() == [False, True, False, False]
    assert is_absent(column).tolist() == [False, False, True, False]


def test_a_nan_sample_is_neither_absent_nor_stale() -> None:
    values = np.array([NAN, np.nan, 1.0])
    assert is_absent(values).tolist() == [False, True, False]
    assert not is_stale(values).any()


def test_end_marks_every_living_series_and_append_revives() -> None:
    block = MetricStore().block("a", series("a", "b"))
    block.append(1.0, np.array([1.0, np.nan]))
    block.end(2.0)
    block.end(3.0)
    assert is_stale(np.ascontiguousarray(block.values)).tolist() == [[False, False], [True, False]]
    block.append(4.0, np.array([1.0, 1.0]))
    assert not block.ended


def test_time_must_go_forward_and_the_width_must_fit() -> None:
    block = MetricStore().block("a", series("a"))
    block.append(1.0, np.array([1.0]))
    with pytest.raises(UsageError, match="old time"):
        block.append(1.0, np.array([1.0]))
    with pytest.raises(UsageError, match="expected 1 values"):
        block.append(2.0, np.array([1.0, 2.0]))


def test_a_block_name_stands_for_one_list_of_series() -> None:
    store = MetricStore()
    assert store.block("a", series("a")) is store.block("a", series("a"))
    with pytest.raises(UsageError, match="other series"):
        store.block("a", series("b"))
    with pytest.raises(UsageError, match="__name__"):
        store.block("b", [{"pod": "a"}])


def test_series_added_later_have_no_sample_before() -> None:
    store = MetricStore()
    block = store.block("a", series("a"))
    block.append(1.0, np.array([1.0]))
    assert block.extend(series("b", "c")) == 1
    block.append(2.0, np.array([1.0, 2.0, 3.0]))
    assert store.series([], 0.0, 1.0) == [freeze(series("a")[0])]
    assert len(store.series([], 0.0, 2.0)) == 3


def test_equal_labels_in_two_blocks_are_one_series() -> None:
    store = MetricStore()
    for start, name in ((0.0, "first"), (100.0, "second")):
        block = store.block(name, series("a", name))
        block.append(start, np.array([start, 0.0]))
        block.append(start + 1, np.array([start, 0.0]))
    chunks = store.select([Matcher("pod", "=", "a")], 0.0, 200.0)
    assert [c.t.tolist() for c in chunks] == [[0, 1, 100, 101]]
    assert chunks[0].v[:, 0].tolist() == [0, 0, 100, 100]


@given(rows=st.integers(1, 200), cut=st.integers(0, 200), retention=st.sampled_from([10.0, 50.0, 1e9]))
def test_a_restored_store_goes_on_exactly_like_the_original(rows: int, cut: int, retention: float) -> None:
    store = MetricStore(retention_s=retention)
    store.block("a", series("a", "b"))
    store.describe("up", "gauge", "The scrape worked.")
    for row in range(rows):
        if row == cut:
            store = MetricStore.load(codec.loads(codec.dumps(store.save())))
        store.block("a", series("a", "b")).append(float(row), np.array([row, np.nan if row % 3 else 1.0]))
    (chunk,) = store.select([Matcher("pod", "=", "a")], -1.0, 1e9)
    first = max(0, rows - 1 - int(min(retention, 1e6)))
    assert chunk.t.tolist() == [float(t) for t in range(first, rows)]
    assert store.metadata["up"]["type"] == "gauge"


LABEL_SETS = st.lists(
    st.dictionaries(st.sampled_from("xyz"), st.sampled_from(["", "a", "ab", "b"]), max_size=3), max_size=12
)
MATCHERS = st.lists(
    st.builds(
        Matcher,
        st.sampled_from("xyz"),
        st.sampled_from(["=", "!=", "=~", "!~"]),
        st.sampled_from(["", "a", "a.*", "b|"]),
    ),
    max_size=3,
)


@given(LABEL_SETS, MATCHERS)
def test_the_index_finds_what_asking_every_series_finds(sets: list[dict[str, str]], matchers: list[Matcher]) -> None:
    index = Index()
    for labels in sets:
        index.add(freeze(labels))
    expected = [i for i, labels in enumerate(sets) if all(m.accepts(labels.get(m.name, "")) for m in matchers)]
    assert index.match(matchers) == expected


def test_no_pattern_can_hold_up_the_world() -> None:
    assert not Matcher("a", "=~", "(a|a)*(b+)+c").accepts("a" * 5000 + "b" * 5000)
    assert not Matcher("a", "=~", ".*.*.*.*.*.*x").accepts("a" * 5000)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(", "missing closing ): `(`"),
        ("[a", "missing closing ]: `[a`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
    ],
)
def test_broken_patterns_are_named_as_prometheus_names_them(pattern: str, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Matcher("a", "=~", pattern)
    assert str(caught.value) == f"error parsing regexp: {text}"


def test_patterns_are_anchored_and_a_dot_matches_line_ends() -> None:
    accepted = [
        Matcher("a", "=~", pattern).accepts("a\nb")
        for pattern in ("a.b", "a", "a.*", "[[:alpha:]].+", "(?i)A.B", "x|a.b")
    ]
    assert accepted == [True, False, True, True, True, True]
