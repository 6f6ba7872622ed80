"""SARIF 2.1.0 of an audit, against a structural model of the parts of the standard that are used."""

import jsonschema
import pytest

from itbench.report.sarif import sarif
from itbench.report.verdicts import STATES

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
INDEX = {"type": "integer", "minimum": -1}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
LOCATION = {
    "type": "object",
    "required": ["logicalLocations"],
    "additionalProperties": False,
    "properties": {
        "logicalLocations": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["fullyQualifiedName"],
                "additionalProperties": False,
                "properties": {"fullyQualifiedName": {"type": "string"}, "kind": {"type": "string"}, "name": {}},
            },
        },
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "properties": {
                "artifactLocation": {"type": "object", "required": ["uri"]},
                "region": {"type": "object", "required": ["startLine"], "properties": {"startLine": {"minimum": 1}}},
            },
        },
    },
}
RESULT = {
    "type": "object",
    "required": ["ruleId", "kind", "level", "message", "guid", "partialFingerprints", "locations"],
    "additionalProperties": False,
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": INDEX,
        "kind": {"enum": ["pass", "open", "informational", "notApplicable", "review", "fail"]},
        "level": LEVEL,
        "message": TEXT,
        "guid": {"pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
        "locations": {"type": "array", "minItems": 1, "items": LOCATION},
        "suppressions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["kind"],
                "properties": {
                    "kind": {"enum": ["inSource", "external"]},
                    "status": {"enum": ["accepted", "underReview", "rejected"]},
                    "justification": {"type": "string"},
                },
            },
        },
        "properties": {"type": "object"},
    },
    "if": {"properties": {"kind": {"not": {"const": "fail"}}}},
    "then": {"properties": {"level": {"const": "none"}}},
}
RULE = {
    "type": "object",
    "required": ["id", "shortDescription"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string"},
        "shortDescription": TEXT,
        "fullDescription": TEXT,
        "help": TEXT,
        "defaultConfiguration": {"type": "object", "properties": {"level": LEVEL}},
        "relationships": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["target"],
                "properties": {
                    "target": {"type": "object", "required": ["id", "toolComponent"]},
                    "kinds": {"type": "array", "items": {"type": "string"}},
                },
            },
        },
    },
}
MODEL = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {"rules": {"type": "array", "items": RULE, "uniqueItems": True}},
                            }
                        },
                    },
                    "results": {"type": "array", "items": RESULT},
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                },
            },
        },
    },
}


def test_the_document_fits_the_standard(audit):
    jsonschema.Draft202012Validator(MODEL).validate(sarif(audit))


@pytest.mark.parametrize(("state", "kind"), [("satisfied", "pass"), ("not_assessed", "open"), ("accepted", "fail")])
def test_only_violations_have_a_level_and_accepted_ones_are_suppressed(audit, state, kind):
    (run,) = sarif(audit)["runs"]
    results = [result for result in run["results"] if result["properties"]["state"] == state]
    assert results and {result["kind"] for result in results} == {kind}
    assert all(bool(result.get("suppressions")) == (state == "accepted") for result in results)


def test_every_result_points_to_its_rule_and_every_rule_to_its_taxonomies(audit):
    (run,) = sarif(audit)["runs"]
    rules, names = run["tool"]["driver"]["rules"], [each["name"] for each in run["taxonomies"]]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    for rule in rules:
        for link in rule["relationships"]:
            target = link["target"]
            assert names[target["toolComponent"]["index"]] == target["toolComponent"]["name"]
            taxonomy = run["taxonomies"][target["toolComponent"]["index"]]
            assert target["id"] in [taxon["id"] for taxon in taxonomy["taxa"]]


def test_all_six_states_have_a_kind():
    from itbench.report.sarif import KINDS

    assert set(KINDS) == set(STATES)
