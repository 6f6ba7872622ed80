"""OSCAL documents of an audit: accepted by compliance-trestle, and consistent beyond what it looks at."""

import copy

import pytest

from itbench.core.errors import ItbenchError
from itbench.report import oscal

pytest.importorskip("trestle.oscal")


def test_plan_and_results_are_accepted_by_trestle_and_refer_to_nothing_absent(audit):
    for document in (oscal.assessment_plan(audit), oscal.assessment_results(audit)):
        assert oscal.problems(document) == []
        assert oscal.check_with_trestle(document)


def test_trestle_refuses_what_is_no_oscal(audit):
    broken = oscal.assessment_results(audit)
    broken["assessment-results"]["results"] = []
    with pytest.raises(ItbenchError, match="assessment-results is not valid"):
        oscal.check_with_trestle(broken)


def test_every_control_with_subjects_has_a_finding_and_what_was_not_assessed_is_not_satisfied(audit):
    (result,) = oscal.assessment_results(audit)["assessment-results"]["results"]
    found = {each["target"]["target-id"]: each["target"]["status"] for each in result["findings"]}
    assert found["cis-k8s-5.2.3_obj"] == {"state": "not-satisfied", "reason": "fail"}
    assert found["cis-k8s-5.2.4_obj"] == {"state": "satisfied", "reason": "pass"}
    assert found["cis-k8s-5.2.5_obj"]["state"] == "not-satisfied" and found["cis-k8s-5.2.5_obj"]["reason"] == "other"
    assert found["cis-k8s-5.2.2_obj"]["state"] == "not-satisfied" and found["cis-k8s-5.2.2_obj"]["reason"] == "other"
    assert "cis-k8s-5.2.6_obj" not in found
    (risk,) = result["risks"]
    assert risk["status"] == "deviation-approved"


def _results(document):
    return document["assessment-results"]["results"][0]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: _results(d)["findings"][0]["related-observations"].append(
            {"observation-uuid": "11111111-1111-4111-8111-111111111111"}), "refers to nothing"),
        (lambda d: d["assessment-results"]["back-matter"]["resources"][0]["rlinks"][0]["hashes"][0].update(value="zz"),
         "not a SHA-256"),
        (lambda d: _results(d)["observations"][0].update(uuid="no"), "not a UUID"),
        (lambda d: _results(d)["observations"][0].update(uuid=_results(d)["observations"][1]["uuid"]), "UUID used twice"),
        (lambda d: _results(d)["local-definitions"]["inventory-items"].clear(), "refers to nothing"),
    ],
)  # fmt: skip
def test_dangling_references_and_bad_hashes_are_found_although_trestle_takes_them(audit, damage, message):
    document = copy.deepcopy(oscal.assessment_results(audit))
    damage(document)
    assert any(message in problem for problem in oscal.problems(document))


def test_equal_reports_give_equal_documents(audit):
    assert oscal.assessment_results(audit) == oscal.assessment_results(audit)
