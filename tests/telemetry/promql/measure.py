"""Asks the real Prometheus and ours the same queries about the same samples.

ITBENCH_REAL=... python tests/telemetry/promql/measure.py record    # the answers of the real one -> golden/
python tests/telemetry/promql/measure.py report                     # docs/promql.md
python tests/telemetry/promql/measure.py differ [TEXT]              # what differs, of queries that contain TEXT
"""

import importlib.util
import math
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from itbench.core.clock import from_unix, unix
from itbench.core.errors import UsageError
from itbench.telemetry.metrics import MetricStore
from itbench.telemetry.openmetrics import Reader
from itbench.telemetry.promql import QueryError, query_instant, query_range
from itbench.telemetry.templates import check
from itbench.telemetry.wire import encode_result

HERE = Path(__file__).parent
T0 = 1768204800.0
INSTANT = T0 + 1800.5
RANGE = (T0 + 900.0, T0 + 3300.0, 600.0)
TOLERANCE = 1e-9
ORDERED = ("sort", "topk", "bottomk")
EPOCH_S = unix(0.0)
VERSION = "3.16"
EXPLAINED = {
    "sum_over_time(up[5m:1ms])": "three million steps for each of three series: ours refuses what would take more than "
    "5 million numbers at once (the range asks for 8 million), Prometheus what would load more than 50 million samples",
}
"""Queries whose answers differ, and why that is so."""


@dataclass(frozen=True)
class Case:
    """A query of the corpus; it is asked at a moment and over a range."""

    topic: str
    query: str


@cache
def corpus() -> tuple[Case, ...]:
    """All queries, those with the same text once."""
    found: dict[str, Case] = {}
    for file in sorted((HERE / "queries").glob("*.txt")):
        for line in file.read_text().split("\n"):
            if line:
                found.setdefault(line, Case(file.stem, line))
    return tuple(found.values())


@cache
def store() -> MetricStore:
    """The samples."""
    reader = Reader()
    with (HERE / "samples.om").open(encoding="utf-8") as lines:
        reader.read("samples.om", lines)
    return reader.store()


def recorded() -> dict[str, list[dict[str, Any]]]:
    """The answers of the real Prometheus by query: at the moment, over the range."""
    answers: dict[str, list[dict[str, Any]]] = {}
    for file in sorted((HERE / "golden").glob("*.jsonl")):
        for line in file.read_bytes().splitlines():
            entry = orjson.loads(line)
            answers[entry["query"]] = entry["answers"]
    return answers


def _one(query: str, *args: float) -> dict[str, Any]:
    try:
        result = (query_instant if len(args) == 1 else query_range)(store(), query, *args)
    except QueryError as error:
        prefix = 'invalid parameter "query": ' if error.kind == "bad_data" else ""
        return {"status": "error", "errorType": error.kind, "error": prefix + str(error)}
    answer: dict[str, Any] = {"status": "success", "data": orjson.loads(encode_result(result, EPOCH_S))}
    notes = {"warnings": list(result.warnings), "infos": list(result.infos)}
    return answer | {name: texts for name, texts in notes.items() if texts}


def ours(query: str) -> list[dict[str, Any]]:
    """Our answers in the shape of the HTTP API."""
    return [_one(query, from_unix(INSTANT)), _one(query, from_unix(RANGE[0]), from_unix(RANGE[1]), RANGE[2])]


def close(left: str, right: str) -> bool:
    """Equal, or apart by less than the tolerance."""
    a, b = float(left), float(right)
    return left == right if a == b or math.isnan(a) else math.isclose(a, b, rel_tol=TOLERANCE)


def _points(series: dict[str, Any]) -> list[Any]:
    return series["values"] if "values" in series else [series["value"]]


def difference(mine: dict[str, Any], theirs: dict[str, Any], query: str) -> str:
    """What differs between two answers, empty where nothing does."""
    for name in ("status", "errorType", "error"):
        if mine.get(name) != theirs.get(name):
            return f"{name}: {mine.get(name)!r} is not {theirs.get(name)!r}"
    for name in ("warnings", "infos"):
        if sorted(mine.get(name, [])) != sorted(theirs.get(name, [])):
            return f"{name}: {mine.get(name)} is not {theirs.get(name)}"
    if theirs["status"] == "error":
        return ""
    kind = theirs["data"]["resultType"]
    left, right = mine["data"]["result"], theirs["data"]["result"]
    if mine["data"]["resultType"] != kind:
        return f"{mine['data']['resultType']} is not {kind}"
    if kind == "string":
        return "" if left == right else f"{left} is not {right}"
    if kind == "scalar":
        left, right = ([{"metric": {}, "value": each}] for each in (left, right))
    if kind == "matrix" or not query.startswith(ORDERED):
        left, right = (sorted(each, key=lambda series: sorted(series["metric"].items())) for each in (left, right))
    labels = [[each["metric"] for each in side] for side in (left, right)]
    if labels[0] != labels[1]:
        return f"series {labels[0]} are not {labels[1]}"
    for a, b in zip(left, right, strict=True):
        first, second = _points(a), _points(b)
        if [t for t, _ in first] != [t for t, _ in second]:
            return f"{a['metric']}: times {first} are not {second}"
        wrong = [(x, y) for x, y in zip(first, second, strict=True) if not close(x[1], y[1])]
        if wrong:
            return f"{a['metric']}: {wrong[0][0]} is not {wrong[0][1]}"
    return ""


def differences(query: str, answers: list[dict[str, Any]]) -> list[str]:
    """What differs between ours and recorded answers."""
    pairs = zip(ours(query), answers, strict=True)
    return [found for mine, theirs in pairs if (found := difference(mine, theirs, query))]


def _helpers() -> Any:
    """The client and the remote-write encoder of the tests of this room."""
    spec = importlib.util.spec_from_file_location("telemetry_conftest", HERE.parent / "conftest.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def real() -> Iterator[Any]:
    """A real Prometheus that holds the samples."""
    helpers = _helpers()
    with tempfile.TemporaryDirectory() as folder:
        url, process = helpers.launch(Path(folder), "global: {}\n")
        try:
            server = helpers.Prometheus(url)
            for body in helpers.write_requests(store()):
                server.write(body)
            yield server
        finally:
            process.terminate()
            process.wait(20)


def ask(server: Any, query: str) -> list[dict[str, Any]]:
    """The answers of the real one."""
    start, end, step = (f"{each:.3f}" for each in RANGE)
    return [
        server.get("/api/v1/query", query=query, time=f"{INSTANT:.3f}"),
        server.get("/api/v1/query_range", query=query, start=start, end=end, step=step),
    ]


def _in_order(answer: dict[str, Any], query: str) -> dict[str, Any]:
    """The answer without what hangs on the order of a hash map."""
    data = answer.get("data", {})
    if data.get("resultType") in ("vector", "matrix") and not query.startswith(ORDERED):
        data["result"].sort(key=lambda series: sorted(series["metric"].items()))
    for name in ("warnings", "infos"):
        if name in answer:
            answer[name].sort()
    return answer


def requests() -> list[str]:
    """Paths that clients ask for, as they stand in `requests.txt`."""
    return [line for line in (HERE / "requests.txt").read_text().splitlines() if line and not line.startswith("#")]


def address(path: str) -> str:
    """The path with its query escaped."""
    return urllib.parse.quote(path, safe="/?&=:%[].,+-_~")


def body_of(raw: bytes) -> Any:
    """JSON where it is some, else the text."""
    text = raw.decode(errors="replace")
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def fetch(base: str, path: str) -> list[Any]:
    """Status and body."""
    try:
        with urllib.request.urlopen(base + address(path), timeout=30) as answer:
            return [answer.status, body_of(answer.read())]
    except urllib.error.HTTPError as error:
        with error:
            return [error.code, body_of(error.read())]


ALERT = 'label_replace(label_replace(vector(1234.5), "pod", "cart-1", "", ""), "team", "a", "", "")'


def templates() -> list[str]:
    """Templates of annotations; those that cannot be parsed are refused when rules are loaded, and not asked about."""
    found = (HERE / "templates.txt").read_text().splitlines()
    return [line for line in found if is_parsed(line)]


def is_parsed(template: str) -> bool:
    """Whether a template can be parsed."""
    try:
        check(template, "")
    except UsageError:
        return False
    return True


def record_templates() -> list[bytes]:
    """The annotations that the real Prometheus makes of the templates."""
    rules = [{"alert": f"A{n}", "expr": ALERT, "annotations": {"t": text}} for n, text in enumerate(templates())]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rules.yml"
        file.write_bytes(orjson.dumps({"groups": [{"name": "g", "interval": "1s", "rules": rules}]}))
        config = f"global: {{external_labels: {{cluster: main}}}}\nrule_files: [{file}]\n"
        url, process = _helpers().launch(Path(folder), config)
        try:
            alerts: dict[str, str] = {}
            for _ in range(200):
                answer = fetch(url, "/api/v1/alerts")[1]["data"]["alerts"]
                alerts = {each["labels"]["alertname"]: each["annotations"].get("t", "") for each in answer}
                if len(alerts) == len(rules):
                    break
                time.sleep(0.1)
        finally:
            process.terminate()
            process.wait(20)
    return [orjson.dumps({"template": text, "text": alerts[f"A{n}"]}) for n, text in enumerate(templates())]


def record() -> None:
    """Write the answers of the real Prometheus."""
    (HERE / "golden").mkdir(exist_ok=True)
    files: dict[str, list[bytes]] = {}
    with real() as server:
        for case in corpus():
            answers = [_in_order(each, case.query) for each in ask(server, case.query)]
            files.setdefault(case.topic, []).append(orjson.dumps({"query": case.query, "answers": answers}))
        asked = [orjson.dumps({"path": path, "answer": fetch(server.url, path)}) for path in requests()]
        (HERE / "requests.jsonl").write_bytes(b"\n".join(asked) + b"\n")
    (HERE / "templates.jsonl").write_bytes(b"\n".join(record_templates()) + b"\n")
    for topic, lines in files.items():
        (HERE / "golden" / f"{topic}.jsonl").write_bytes(b"\n".join(lines) + b"\n")


TOPICS = {
    "aggregation": "aggregation operators",
    "errors": "refused by parser or type check, with place and words",
    "execution": "refused or limited while evaluating",
    "functions": "functions of instant vectors, sorting, `absent`, `timestamp`",
    "histograms": "classic histograms",
    "labels": "`label_replace`, `label_join`",
    "literals": "numbers, durations, strings",
    "matching": "vector matching",
    "modifiers": "`offset`, `@`, arithmetic with durations, raw ranges",
    "notes": "warnings and infos",
    "operators": "arithmetic, comparison, set operators",
    "over_time": "`*_over_time`",
    "rates": "rates, regression, counters, `anchored`, `smoothed`",
    "selectors": "selectors, matchers, UTF-8 names, comments",
    "subqueries": "subqueries",
    "time": "calendar functions",
}


def table() -> tuple[list[str], list[str]]:
    """Rows of the report: by topic, and the queries that differ."""
    answers, rows, wrong = recorded(), [], []
    for topic in sorted({case.topic for case in corpus()}):
        cases = [case for case in corpus() if case.topic == topic]
        errors = sum(answers[case.query][0]["status"] == "error" for case in cases)
        different = [case.query for case in cases if differences(case.query, answers[case.query])]
        rows.append(f"| {TOPICS[topic]} | {len(cases)} | {errors} | {len(cases) - len(different)} |")
        wrong += [f"| `{query}` | {EXPLAINED.get(query, 'not explained')} |" for query in different]
    return rows, wrong


def report() -> None:
    """Write docs/promql.md between its marks."""
    rows, wrong = table()
    total = len(corpus())
    text = [
        f"**{total - len(wrong)} of {total} queries agree** with Prometheus {VERSION}, each asked at a moment and over a range:",
        "type and text of errors, result type, label sets, times, values within 1e-9, the order of `sort`, `topk` and",
        "`bottomk`, and warnings and infos with their places.",
        "",
        "| topic | queries | of these refused | agree |",
        "|---|---:|---:|---:|",
        *rows,
        "",
        *(["| query | why its answer differs |", "|---|---|", *wrong] if wrong else ["Nothing differs."]),
    ]
    page = HERE.parents[2] / "docs" / "promql.md"
    before, _, rest = page.read_text().partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    page.write_text(before + MARKS[0] + "\n" + "\n".join(text) + "\n" + MARKS[1] + after)


MARKS = ("<!-- measured -->", "<!-- end of what was measured -->")


def differ(text: str = "") -> None:
    """Print what differs."""
    answers = recorded()
    for case in corpus():
        if text in case.query or text == case.topic:
            for found in differences(case.query, answers[case.query]):
                print(f"{case.topic}: {case.query}\n    {found[:600]}")


if __name__ == "__main__":
    {"record": record, "report": report, "differ": differ}[sys.argv[1]](*sys.argv[2:])
