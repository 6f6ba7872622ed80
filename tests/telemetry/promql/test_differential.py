"""Every query of the corpus has the answer that was recorded from the real Prometheus 3: values, labels, errors, notes."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from itbench.telemetry.promql import parse
from itbench.telemetry.promql.functions import FUNCTIONS
from itbench.telemetry.promql.tree import Aggregate, Call, walk
from itbench.telemetry.promql.values import QueryError

_SPEC = importlib.util.spec_from_file_location("promql_measure", Path(__file__).parent / "measure.py")
assert _SPEC is not None and _SPEC.loader is not None
measure: Any = importlib.util.module_from_spec(_SPEC)
sys.modules["promql_measure"] = measure
_SPEC.loader.exec_module(measure)

TOPICS = sorted({case.topic for case in measure.corpus()})


@pytest.mark.parametrize("topic", TOPICS)
def test_answers_are_those_of_the_real_prometheus(topic: str) -> None:
    recorded = measure.recorded()
    wrong = {
        case.query: found
        for case in measure.corpus()
        if case.topic == topic and (found := measure.differences(case.query, recorded[case.query]))
    }
    assert {query: found for query, found in wrong.items() if query not in measure.EXPLAINED} == {}


def test_an_explained_difference_is_one() -> None:
    recorded = measure.recorded()
    assert [query for query in measure.EXPLAINED if not measure.differences(query, recorded[query])] == []


def test_the_corpus_has_every_function_and_aggregation_of_prometheus() -> None:
    used: set[str] = set()
    refused = " ".join(case.query for case in measure.corpus())
    for case in measure.corpus():
        try:
            nodes = list(walk(parse(case.query)))
        except QueryError:
            continue
        used |= {node.name for node in nodes if isinstance(node, Call)}
        used |= {node.op for node in nodes if isinstance(node, Aggregate)}
    assert {name for name, each in FUNCTIONS.items() if not each.experimental} - used == set()
    assert {name for name, each in FUNCTIONS.items() if each.experimental and f"{name}(" not in refused} <= {
        "min_of", "ts_of_first_over_time", "ts_of_min_over_time",
    }  # fmt: skip
    assert len(measure.corpus()) >= 1000


def test_the_samples_are_what_their_script_writes() -> None:
    spec = importlib.util.spec_from_file_location("promql_samples", Path(__file__).parent / "samples.py")
    assert spec is not None and spec.loader is not None
    samples = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(samples)
    text = "\n".join(samples.lines()) + "\n"
    assert text == (Path(__file__).parent / "samples.om").read_text()


def test_a_difference_is_seen() -> None:
    query = "temperature + 1"
    mine, theirs = measure.ours(query)[0], measure.recorded()[query][0]
    mine["data"]["result"][0]["value"][1] = "123456"
    assert measure.difference(mine, theirs, query)
    assert measure.difference({**mine, "warnings": ["x"]}, theirs, query)
    assert measure.difference({"status": "error", "errorType": "execution", "error": ""}, theirs, query)


@pytest.mark.real
def test_the_real_prometheus_still_answers_so(start_prometheus: Any, request: pytest.FixtureRequest) -> None:
    server = start_prometheus("global: {}\n")
    for body in measure._helpers().write_requests(measure.store()):
        server.write(body)
    recorded = measure.recorded()
    for case in measure.corpus():
        found = [
            difference
            for new, old in zip(measure.ask(server, case.query), recorded[case.query], strict=True)
            if (difference := measure.difference(new, old, case.query))
        ]
        assert not found, f"{case.query}: {found}"
