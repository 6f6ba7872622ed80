"""The parser of PromQL: any text is a tree or a refusal with its place; what is printed is read again as the same."""

import re
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.telemetry.metrics import MetricStore
from itbench.telemetry.promql import QueryError, parse, query_instant
from itbench.telemetry.promql.gotext import parse_duration_ns, quote, show_duration, unquote
from itbench.telemetry.promql.printer import as_json, pretty, text

CORPUS = [
    line
    for file in sorted((Path(__file__).parent / "promql" / "queries").glob("*.txt"))
    for line in file.read_text().split("\n")
    if line
]
WORDS = (
    "(", ")", "{", "}", "[", "]", ",", "+", "-", "*", "/", "^", "%", "==", "!=", "=~", "!~", ">", "<=", "=", "!", "and", "or",
    "unless", "by", "without", "on", "ignoring", "group_left", "bool", "offset", "@", "5m", "1", "0x1F", '"a"', "'b'", "`c`",
    "foo", "sum", "rate", "topk", "start", "step()", ":", "#x\n", "\\", "é", "\ufffd", "1e", "5mm", "anchored", "fill(0)", "NaN",
)  # fmt: skip
PLACE = re.compile(r"(?:\d+:\d+|unknown position): parse error: .|\d+:\d+: ", re.DOTALL)


def _answer(query: str) -> str:
    try:
        tree = parse(query)
    except QueryError as error:
        assert error.kind == "bad_data"
        return str(error)
    assert orjson.dumps(as_json(tree)) and pretty(tree)
    return ""


@given(st.text(max_size=40) | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_any_text_is_a_query_or_is_refused_with_its_place(query: str) -> None:
    problem = _answer(query)
    assert not problem or PLACE.match(problem), problem


@given(st.sampled_from(CORPUS), st.integers(0, 200), st.sampled_from(WORDS), st.booleans())
def test_a_damaged_query_is_a_query_or_is_refused_with_its_place(query: str, at: int, word: str, cut: bool) -> None:
    problem = _answer(query[: at % (len(query) + 1)] + word + query[at % (len(query) + 1) + cut :])
    assert not problem or PLACE.match(problem), problem


def test_what_is_printed_is_read_as_the_same() -> None:
    read = 0
    for query in CORPUS:
        try:
            shown = text(parse(query))
        except QueryError:
            continue
        assert text(parse(shown)) == shown, query
        assert text(parse(pretty(parse(query)))) == shown, query
        read += 1
    assert read > 700


@pytest.mark.parametrize("query", ["(" * 5000 + "1" + ")" * 5000, "-" * 5000 + "1", "+".join(["1"] * 5000)])
def test_what_is_nested_too_deeply_is_refused(query: str) -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        query_instant(MetricStore(), query, 0.0)


@pytest.mark.parametrize("terms", range(100, 900, 50))
def test_what_can_be_parsed_can_be_evaluated_or_is_refused(terms: int) -> None:
    query = "+".join(["vector(1)"] * terms)
    try:
        found = query_instant(MetricStore(), query, 0.0).series[0].v[0]
    except QueryError as error:
        assert "nested too deeply" in str(error)
        assert terms > 200
    else:
        assert found == terms


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=20))
def test_quoted_text_is_read_again(value: str) -> None:
    assert unquote(quote(value)) == value


@given(st.integers(1, 2**62 // 10**6))
def test_durations_are_read_as_they_are_shown(ms: int) -> None:
    assert parse_duration_ns(show_duration(ms * 1_000_000)) == ms * 1_000_000
