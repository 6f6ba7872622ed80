"""What is said about keys that a body sets twice, in the words of the real server."""

from itbench.kube import duplicates
from itbench.kube.api import bodies
from itbench.kube.requests import Options

JSON = "application/json"


def found(raw: str, content_type: str) -> duplicates.Duplicates:
    return bodies.duplicates_of(Options(), raw.encode(), content_type).duplicates


def test_json_duplicates_and_unknown_fields_come_in_the_order_of_the_body() -> None:
    raw = '{"metadata":{"labels":{"a":"b","a":"c"}},"spec":{"zz":1,"replicas":1,"replicas":2,"c":[{"i":1,"i":2,"foo":1}]}}'
    assert found(raw, JSON).warnings(["spec.zz", "spec.c[0].foo"]) == [
        'duplicate field "metadata.labels.a"',
        'unknown field "spec.zz"',
        'duplicate field "spec.replicas"',
        'duplicate field "spec.c[0].i"',
        'unknown field "spec.c[0].foo"',
    ]


def test_a_body_without_duplicates_costs_nothing_and_says_nothing() -> None:
    options = Options()
    assert bodies.duplicates_of(options, b'{"a":{"b":1},"c":{"b":1}}', JSON) is options
    assert options.duplicates.error(["x"]) == 'unknown field "x"'


def test_yaml_duplicates_are_named_by_line_and_summed_up() -> None:
    raw = "a: 1\nb:\n  c: 1\n  c: 2\na: 3\n"
    said = found(raw, "application/yaml")
    assert said.warnings([]) == ['line 4: key "c" already set in map', 'line 5: key "a" already set in map']
    head = 'yaml: unmarshal errors:\n  line 4: key "c" already set in map\n  line 5: key "a" already set in map'
    assert said.error(["b.x"]) == f'{head}, unknown field "b.x"'


def test_patches_say_their_own_duplicates_first() -> None:
    merge = found('{"spec":{"x":1,"replicas":3,"replicas":4}}', "application/merge-patch+json")
    assert merge.error(["spec.x"]) == 'duplicate field "spec.replicas", unknown field "spec.x"'
    operations = '[{"op":"add","path":"/a","value":{"foo":1},"value":2},{"op":"add","foo":"b","path":"/b","value":1}]'
    said = found(operations, "application/json-patch+json")
    assert said.warnings([]) == ['json patch duplicate field "[0].value"', 'json patch unknown field "[1].foo"']
