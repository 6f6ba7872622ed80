"""CEL as Kubernetes evaluates it: its functions, error texts, composed variables and questions to the authorizer."""

from typing import Any

import pytest

from itbench.engines.cel_rules import Rule, check, evaluate

VARIABLES = {"object": "dyn", "authorizer": "map"}
DATA = {"object": {"spec": {"replicas": 3}, "list": [1, 2, 3]}, "authorizer": {"user": "eve"}}
COMPOSED = [("y", "1"), ("x", "object.nope")]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("foo.bar == 1", "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo.bar == 1\n | ^"),
        ("variables.z", "ERROR: <input>:1:10: undefined field 'z'\n | variables.z\n | .........^"),
        (
            "'a' + 1 == 'b'",
            "ERROR: <input>:1:5: found no matching overload for '_+_' applied to '(string, int)'\n"
            " | 'a' + 1 == 'b'\n | ....^",
        ),
    ],
)
def test_errors_of_compilation_read_as_the_real_server_prints_them(expression: str, text: str) -> None:
    """The place and the words are those of cel-go (recorded from a real API server)."""
    assert check([Rule(expression)], VARIABLES, COMPOSED)[1][0].error == text


@pytest.mark.parametrize(
    ("expression", "kind"),
    [("1 + 1", "int"), ("object.a", "dyn"), ("[1]", "list(int)"), ("null", "null_type"), ("variables.y", "int")],
)
def test_types_have_the_names_of_cel_go(expression: str, kind: str) -> None:
    """A rule of the wrong type is refused by the name of its type."""
    assert check([Rule(expression)], VARIABLES, COMPOSED)[1][0].type == kind


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("object.spec.replicas <= 5", True),
        ("variables.y + 1", 2),
        ("quantity('1Gi') == quantity('1024Mi')", True),
        ("quantity('500m').add(quantity('1')).isGreaterThan(quantity('1'))", True),
        ("quantity('2k').asInteger()", 2000),
        ("object.list.sum()", 6),
        ("object.list.indexOf(3)", 2),
        ("sets.contains([1, 2], [2])", True),
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3')", True),
        ("ip('::1').isLoopback()", True),
        ("url('https://a:80/b?x=1').getHost()", "a:80"),
        ("'abc1'.find('[0-9]')", "1"),
        ("isURL('nothing')", False),
    ],
)
def test_the_functions_of_kubernetes_are_there(expression: str, value: Any) -> None:
    """Quantities, addresses, URLs, patterns, lists and sets."""
    outcome = evaluate([Rule(expression)], VARIABLES, DATA, COMPOSED)[0]
    assert (outcome.value, outcome.fault, outcome.error) == (value, "", "")


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("object.nope == 1", "no such key: nope"),
        ("object.list[7] == 1", "index out of bounds: 7"),
        ("1 / 0 == 1", "division by zero"),
        ("object.spec < 3", "no such overload"),
        ("object.list.name == 1", "no such key: name"),
        ("object.spec.replicas[0] == 1", "no such key: 0"),
        ("int('x') == 1", "type conversion error from 'string' to 'int'"),
        ("variables.x == 1", 'composited variable "x" fails to evaluate: no such key: nope'),
    ],
)
def test_faults_at_run_time_read_as_those_of_cel_go(expression: str, fault: str) -> None:
    """What policies report as `resulted in error: ...`."""
    assert evaluate([Rule(expression)], VARIABLES, DATA, COMPOSED)[0].fault == fault


def test_the_authorizer_is_asked_once_per_question() -> None:
    """A check reaches the caller with what the expression set, and its answer comes back."""
    asked: list[dict[str, Any]] = []

    def decide(question: dict[str, Any]) -> dict[str, Any]:
        asked.append(question)
        return {"allowed": question["verb"] == "create", "reason": "because"}

    path = "authorizer.group('apps').resource('deployments').namespace('shop')"
    rules = [Rule(f"{path}.check('{verb}').{what}") for verb, what in (("create", "allowed()"), ("get", "reason()"))]
    outcomes = evaluate([*rules, rules[0]], VARIABLES, DATA, (), decide)
    assert [row.value for row in outcomes] == [True, "because", True]
    wanted = {"user": "eve", "group": "apps", "resource": "deployments", "namespace": "shop"}
    assert asked == [{**wanted, "verb": "create"}, {**wanted, "verb": "get"}]


def test_rules_may_have_data_of_their_own() -> None:
    """Schemas evaluate one rule over many nodes in one call."""
    rules = [Rule("self > 1", {"self": value}) for value in (1, 2)]
    assert [row.value for row in evaluate(rules, {"self": "dyn"})] == [False, True]
