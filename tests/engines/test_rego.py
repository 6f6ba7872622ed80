"""Rego in a child process: values, undefined, errors, limits."""

import pytest

from itbench.engines.rego import engine_name, policy

HEAD = "package check\n\nimport rego.v1\n\n"


def evaluated(body, given=None, **limits):
    with policy(HEAD + body, "data.check.result", **limits) as rego:
        return rego.evaluate(given)


@pytest.mark.parametrize(
    ("body", "given", "value"),
    [
        ("result := input.a + 1", {"a": 1}, 2),
        ("result contains x if some x in input.l", {"l": ["b", "a", "b"]}, ["a", "b"]),
        ('result := {"s": {1, 2}}', None, {"s": [1, 2]}),
        ('result contains {"k": x} if some x in input.l', {"l": ["b", "a"]}, [{"k": "a"}, {"k": "b"}]),
        ("result := is_null(input)", None, True),
        ("result := false", None, False),
    ],
)
def test_values_come_back_as_plain_data_with_sets_as_sorted_lists(body, given, value):
    came = evaluated(body, given)
    assert (came.value, came.cause) == (value, "")


def test_undefined_is_told_apart_from_false_and_from_an_empty_result():
    assert evaluated("result := true if input.x", {}).cause == "undefined"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("result := ", "error"),
        ("result = 1 { true }", "if"),
        ("other := 1", "has no value"),
        ('result := http.send({"method": "get", "url": "http://127.0.0.1:1"}).status_code', ""),
        ('result := crypto.sha256("a")', "could not find function"),
        ("result := time.now_ns()", "time.now_ns is not available"),
        ('result := rand.intn("x", 5)', "rand.intn is not available"),
    ],
)
def test_what_a_policy_may_not_do_is_an_error_and_never_a_value(body, words):
    came = evaluated(body)
    assert came.value is None and came.cause in ("artifact_error", "undefined") and words in came.detail
    assert "backtrace" not in came.detail


def test_an_endless_policy_is_ended_and_after_two_such_inputs_not_asked_again():
    body = "result := count([1 | some a in numbers.range(1, 9000); some b in numbers.range(1, 9000); a == b])"
    with policy(HEAD + body, "data.check.result", time_s=0.3) as rego:
        came = [rego.evaluate(None) for _ in range(3)]
    assert {each.cause for each in came} == {"artifact_timeout"} and "not asked" in came[2].detail


def test_a_policy_that_takes_all_memory_harms_nobody_else():
    body = 'result := concat("", [s | some i in numbers.range(1, 9000); s := sprintf("%-100000d", [i])])'
    with policy(HEAD + body, "data.check.result") as rego:
        assert rego.evaluate(None).cause in ("artifact_error", "artifact_timeout")
    assert evaluated("result := 1").value == 1


def test_records_name_the_engine_and_its_version():
    assert engine_name().startswith("regorus 0.")
