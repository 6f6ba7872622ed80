"""Documents and their errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from itbench.agents.steps import STEPS
from itbench.cloud.estate import Estate
from itbench.core.documents.app import App
from itbench.core.documents.base import DocumentError, load, parse, read_yaml, seconds
from itbench.core.documents.fault import Fault
from itbench.core.documents.metric import MetricCard
from itbench.core.documents.result import Evidence, Lock, Result, RunDocument
from itbench.core.documents.scenario import Scenario
from itbench.evaluate.grade import check_models
from itbench.library.suites import Suite
from itbench.run.jobs import Job

GOOD = """\
schema: itbench/scenario/v1
id: sre-900
title: T
domain: sre
family: f
level: easy
source: {what: w}
environment: {app: {id: astronomy-shop}}
page: hello
checks:
  - slo: {}
repairs:
  - {name: r, steps: [{kubectl: get pods}, {wait: 2m}]}
"""


def write(tmp_path, text):
    file = tmp_path / "scenario.yaml"
    file.write_text(text)
    return file


def test_a_good_document_loads_with_typed_durations_and_entries(tmp_path):
    scenario = load(Scenario, write(tmp_path, GOOD))
    assert scenario.checks[0].kind == "slo" and scenario.repairs[0].steps[1].spec == "2m"
    assert scenario.task.limits.time == 1800.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("level: easy", "level: eazy", r"scenario\.yaml:6: level: .*'eazy'; did you mean 'easy'\?"),
        ("family: f", "famliy: f", r"scenario\.yaml:5: famliy: no such field.*did you mean 'family'\?"),
        ("title: T\n", "", r"scenario\.yaml:1: title: required field is missing"),
        (
            "{id: astronomy-shop}",
            "{idd: x}",
            r"scenario\.yaml:8: environment\.app\.idd: no such field.*did you mean 'id'\?",
        ),
        ("page: hello", "page: hello\npage: again", r"scenario\.yaml:10: field given twice: 'page'"),
        ("page: hello", "page: [", r"scenario\.yaml:\d+: not YAML"),
        ("  - slo: {}", "  - slo", r"scenario\.yaml:1\d: checks.*one key"),
    ],
)
def test_a_wrong_document_is_named_by_file_line_field_value_and_nearest(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(DocumentError, match=message):
        load(Scenario, write(tmp_path, GOOD.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{app: {id: astronomy-shop}}", f"{{load: {{journeys: {{buy: {rate}}}}}}}", rf"scenario\.yaml:8: {why}")
        for rate, why in (
            (".nan", "not a finite number"),
            (".inf", "not a finite number"),
            ("-1", "environment.load.journeys.buy: .*greater than or equal to 0"),
            ("1e300", "environment.load.journeys.buy: .*less than or equal to 100000"),
            ("1.0e+300", "environment.load.journeys.buy: .*less than or equal to 100000"),
            ("1e999", "environment.load.journeys.buy: .*finite"),
        )
    ]
    + [
        ("page: hello", f"page: hello\n{field}", rf"scenario\.yaml:10: {why}")
        for field, why in (
            ("task: {limits: {steps: true}}", "task.limits.steps: .*integer; seen True"),
            ('task: {limits: {steps: "80"}}', "task.limits.steps: .*integer; seen '80'"),
            ("task: {limits: {steps: 80.0}}", "task.limits.steps: .*integer; seen 80.0"),
            ("task: {limits: {steps: 1000000000}}", "task.limits.steps: .*less than"),
            ("task: {limits: {time: -5}}", "task.limits.time: .*greater than or equal to 0"),
            ("settle: " + "9" * 400, "settle: .*reasonable size"),
            ("settle: " + "9" * 400 + "s", "settle: .*finite"),
            ("settle: 20000d", "settle: .*less than"),
        )
    ],
)
def test_a_number_outside_its_bounds_is_refused_with_line_and_field(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(DocumentError, match=message):
        load(Scenario, write(tmp_path, GOOD.replace(old, new)))


@pytest.mark.parametrize("model", [RunDocument, Job, Result, Evidence, Lock])
@pytest.mark.parametrize("seed", [-1, 2**63, True, "7", 7.0])
def test_a_seed_is_a_whole_number_that_every_generator_takes(model, seed):
    with pytest.raises(DocumentError, match=r"seed: "):
        parse(model, {"seed": seed})


def numbers(schema, finite=None):
    """Every schema of a number inside a pydantic schema, with whether its model refuses infinite ones."""
    if isinstance(schema, dict):
        finite = (schema.get("config") or {}).get("allow_inf_nan", True) is False if "config" in schema else finite
        if schema.get("type") in ("int", "float"):
            yield schema, finite
        for key, value in schema.items():
            if key not in ("metadata", "default"):
                yield from numbers(value, finite)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from numbers(value, finite)


@pytest.mark.parametrize(
    "model",
    [Scenario, App, Fault, MetricCard, Suite, Estate, RunDocument, Job, *check_models().values(), *STEPS.values()],
)
def test_no_document_takes_inexact_whole_numbers_or_infinite_ones(model):
    for schema, finite in numbers(TypeAdapter(model).core_schema):
        assert schema.get("strict") if schema["type"] == "int" else finite, schema


def test_every_problem_has_its_own_line(tmp_path):
    text = GOOD.replace("level: easy", "level: x").replace("title: T\n", "")
    with pytest.raises(DocumentError) as caught:
        load(Scenario, write(tmp_path, text))
    assert len(str(caught.value).splitlines()) == 2


def test_a_document_that_is_no_mapping_is_refused():
    with pytest.raises(DocumentError, match="not a mapping"):
        parse(Scenario, ["a"])


def test_a_missing_file_is_one_clear_line(tmp_path):
    with pytest.raises(DocumentError, match="cannot read"):
        read_yaml(tmp_path / "nosuch.yaml")


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"x: &x [*x]", r"scenario\.yaml:1: a value that holds itself"),
        (b"a: 1\nx: &x {y: {z: *x}}", r"scenario\.yaml:2: a value that holds itself"),
        (b"x: &x {<<: *x}", r"scenario\.yaml:1: a value that holds itself"),
        (BOMB.encode(), r"scenario\.yaml:\d+: too many values"),
        (MERGES.encode(), r"scenario\.yaml:\d+: too many values"),
        (b"\n" + b"[" * 50_000, r"scenario\.yaml:2: .*(nested too deep|nesting depth)"),
        (b"- " * 50_000 + b"x", r"scenario\.yaml:1: .*(nested too deep|nesting depth)"),
        (b"a: \xff\xfe", r"cannot read .*scenario\.yaml.*UTF-8"),
        (b"\xff\xfe", r"cannot read .*scenario\.yaml.*UTF-8"),
        (b"a: 1\nb: \x00", r"scenario\.yaml:1: not YAML"),
        (b"a: 1\n--- \nb: 2", r"scenario\.yaml:2: not YAML"),
        (b"a: 1\nb: !!python/object:x.Y {}", r"scenario\.yaml:2: not YAML"),
        (b"a: 1\n? {b: 1}\n: 2", r"scenario\.yaml:2: a field whose name is no text"),
        (b"a: 1\nb: 2024-99-99", r"scenario\.yaml:2: not a value"),
        (b"a: 1\nb: " + b"9" * 5000, r"scenario\.yaml:2: not a value"),
        (b"a: 1\nb: !!int x", r"scenario\.yaml:2: not a value"),
        (b"a: 1\nb: !!bool x", r"scenario\.yaml:2: not a value"),
        (b"a: 1\nb: .nan", r"scenario\.yaml:2: not a finite number"),
        (b"a: 1\nb: [-.inf]", r"scenario\.yaml:2: not a finite number"),
        (b"a: 1\nb: 1.0e+999", r"scenario\.yaml:2: not a finite number"),
    ],
)
def test_a_file_that_cannot_be_a_document_is_one_line_with_file_and_line(tmp_path, raw, message):
    file = tmp_path / "scenario.yaml"
    file.write_bytes(raw)
    with pytest.raises(DocumentError, match=message) as caught:
        load(Scenario, file)
    assert len(str(caught.value).splitlines()) == 1


@given(st.binary(max_size=60) | st.text("ax1.:[]{}&*<!?-|>'\"#% \n\t", max_size=60).map(str.encode))
def test_any_bytes_are_data_or_a_document_error(tmp_path_factory, raw):
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_bytes(raw)
    try:
        _, lines = read_yaml(file)
    except DocumentError:
        return
    assert all(line >= 1 for line in lines.values())


@pytest.mark.parametrize(
    ("text", "value"), [("90s", 90.0), ("1h30m", 5400.0), ("250ms", 0.25), (12, 12.0), ("1d", 86400.0)]
)
def test_durations_are_seconds(text, value):
    assert seconds(text) == value


@given(st.text(max_size=8))
def test_whatever_is_no_duration_is_a_value_error_and_never_a_wrong_number(text):
    try:
        value = seconds(text)
    except ValueError:
        return
    assert value >= 0 and text.strip()[-1] in "smhd"
