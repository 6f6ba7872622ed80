"""Custom resources answer what a real API server (1.34.4) answered to the same requests."""

from typing import Any

import pytest

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


def _same(found: dict, wanted: dict, what: Any) -> None:
    found = {key: value for key, value in found.items() if key != "spec" or "spec" in wanted}
    assert found == wanted, what


def test_definitions_are_accepted_and_refused_in_the_real_words(estate: Any, recorded: Any) -> None:
    """Every recorded definition gets the real answer: names, versions, schemas, defaults, columns, scale, rules."""
    for row in recorded("definitions"):
        _same(estate.create(DEFINITIONS, row["body"]), row["answer"], row["label"])


def test_objects_are_pruned_defaulted_and_checked_as_really(estate: Any, recorded: Any) -> None:
    """Every recorded object gets the real answer and comes out with the real spec."""
    record = recorded("objects")
    resource = estate.define(record["definition"])
    for row in record["creates"]:
        found = estate.create(resource, row["body"], validation=row.get("validation", "Warn"))
        _same(found, row["answer"], row["body"])


def test_configurations_to_apply_are_typed_as_really(estate: Any, recorded: Any) -> None:
    """Server-side apply refuses what does not fit the schema with the merge library's texts."""
    record = recorded("objects")
    resource = estate.define(record["definition"])
    for row in record["applies"]:
        assert estate.patch(resource, "ap", "apply", row["body"]) == row["answer"], row["body"]


def test_rules_judge_new_and_changed_objects_as_really(estate: Any, recorded: Any) -> None:
    """CEL rules: messages, reasons, paths, old values by list keys, optional old values, faults at run time."""
    record = recorded("rules")
    resource = estate.define(record["definition"])
    for row in record["creates"]:
        _same(estate.create(resource, row["body"]), row["answer"], row["body"])
    assert estate.create(resource, record["base"], dry=False)["code"] == 201
    for row in record["patches"]:
        _same(estate.patch(resource, "c", "merge", row["body"]), row["answer"], row["body"])


@pytest.mark.parametrize("name", ["definitions", "objects", "rules"])
def test_records_hold_refusals_and_acceptance(recorded: Any, name: str) -> None:
    """The records are worth comparing with: they have both outcomes."""
    record = recorded(name)
    rows = record if isinstance(record, list) else record["creates"]
    assert {201, 422} <= {row["answer"]["code"] for row in rows}
