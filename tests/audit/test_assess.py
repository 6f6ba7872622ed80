"""From facts to verdicts: gaps, empty populations, exceptions, exit codes, files."""

import datetime
import itertools
import json

import pytest

from itbench.audit import exceptions, facts
from itbench.audit.assess import assess
from itbench.audit.collect import collect
from itbench.core.errors import EnvironmentFault, UsageError
from itbench.kube.client import ApiError
from itbench.policy.controls.catalog import PROFILES
from itbench.report.verdicts import compliance, control_state, counts, coverage, exit_code

PROFILE = PROFILES["cis-k8s"]
POD = {
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "shop", "uid": "u1", "managedFields": [{}]},
    "spec": {"hostPID": True, "containers": [{"name": "c", "env": [{"name": "PASSWORD", "value": "hunter2"}]}]},
}
WAIVER = {
    "control": "5.2.3",
    "subject": "Pod/shop/p",
    "reason": "agent of the node vendor",
    "approver": "ciso",
    "expires": datetime.date(2027, 1, 1),
}


class Estate:
    """A client that answers lists, and counts what it is asked."""

    def __init__(self, objects, refuses=()):
        self.objects, self.refuses, self.asked = objects, refuses, []

    def get(self, resource, name, namespace=""):
        self.asked.append(("get", resource))
        return {"metadata": {"uid": "estate-1"}}

    def list(self, resource, namespace="", *, labels="", fields=""):
        self.asked.append(("list", resource))
        if resource in self.refuses:
            raise ApiError({"code": 403, "reason": "Forbidden", "message": f"cannot list {resource}"})
        return self.objects.get(resource, [])

    def __getattr__(self, name):
        raise AssertionError(f"the audit asked to {name}")


def gathered(objects, refuses=()):
    ticks = itertools.count()
    return collect(
        Estate(objects, refuses),
        PROFILE.resources,
        lambda: f"2026-11-30T12:00:{next(ticks):02d}Z",
        {"identity": "auditor"},
    )


def judged(objects, refuses=(), waivers=()):
    return assess(PROFILE, gathered(objects, refuses), [exceptions.Waiver(**each) for each in waivers])


def of(report, control):
    return [verdict for verdict in report.verdicts if verdict.control.id == control]


def test_a_violation_names_subject_observation_and_the_hash_of_its_evidence():
    (verdict,) = of(judged({"pods": [POD]}), "5.2.3")
    assert (verdict.state, verdict.subject.text, verdict.observed) == ("not_satisfied", "Pod/shop/p", "hostPID: true")
    (ref,) = verdict.evidence
    assert ref.path == "facts/pods.json" and ref.sha256 == gathered({"pods": [POD]}).sheet("pods").sha256


def test_a_complete_and_empty_population_is_not_applicable_and_an_unread_one_is_not_assessed():
    (empty,) = of(judged({}), "5.2.3")
    assert (empty.state, empty.reason) == ("not_applicable", "population 0, all lists complete")
    (unread,) = of(judged({}, refuses=("cronjobs.batch",)), "5.2.3")
    assert unread.state == "not_assessed" and "cronjobs.batch: 403 Forbidden" in unread.reason


def test_what_was_seen_to_be_wrong_counts_even_where_other_lists_are_missing():
    states = [verdict.state for verdict in of(judged({"pods": [POD]}, refuses=("cronjobs.batch",)), "5.2.3")]
    assert states == ["not_satisfied", "not_assessed"]


def test_absence_is_not_concluded_from_a_list_that_could_not_be_read():
    namespaces = [{"kind": "Namespace", "metadata": {"name": "shop"}}]
    report = judged({"pods": [POD], "namespaces": namespaces}, refuses=("networkpolicies.networking.k8s.io",))
    assert [verdict.state for verdict in of(report, "5.3.2")] == ["not_assessed"]


def test_nothing_readable_is_never_compliance():
    report = judged({"pods": [POD]}, refuses=PROFILE.resources)
    assert set(counts(report.verdicts)) and counts(report.verdicts)["satisfied"] == 0
    assert compliance(report.verdicts) == (0, 0) and coverage(report.verdicts)[0] == 0
    assert exit_code(report.verdicts, "high") == 3


def test_an_exception_accepts_one_violation_and_is_counted_apart():
    report = judged({"pods": [POD]}, waivers=[WAIVER])
    (verdict,) = of(report, "5.2.3")
    assert verdict.state == "accepted" and verdict.exception.approver == "ciso"
    assert "5.2.3" not in {v.control.id for v in report.verdicts if v.state == "not_satisfied"}


@pytest.mark.parametrize(
    "change", [{"expires": datetime.date(2026, 11, 29)}, {"subject": "Pod/shop/*"}, {"subject": "Pod/other/p"}]
)
def test_an_expired_or_wildcard_exception_is_a_finding_and_accepts_nothing(change):
    report = judged({"pods": [POD]}, waivers=[{**WAIVER, **change}])
    assert [verdict.state for verdict in of(report, "5.2.3")] == ["not_satisfied"]
    own = of(report, exceptions.CONTROL)
    assert bool(own) == (change.get("subject") != "Pod/other/p") and all(v.state == "not_satisfied" for v in own)


@pytest.mark.parametrize(("fail_on", "code"), [("", 0), ("low", 1), ("high", 1)])
def test_the_gate_decides_between_found_and_failed(fail_on, code):
    assert exit_code(judged({"pods": [POD]}).verdicts, fail_on) == code


def test_a_violation_below_the_gate_does_not_fail_it():
    medium = [v for v in judged({"pods": [POD]}).verdicts if v.severity != "high"]
    assert exit_code(medium, "high") == 0 and exit_code(medium, "medium") == 1


def test_the_state_of_a_control_is_that_of_its_worst_subject():
    good = {**POD, "metadata": {"name": "q", "namespace": "shop", "uid": "u2"}, "spec": {"containers": []}}
    assert control_state(of(judged({"pods": [POD, good]}), "5.2.3")) == "not_satisfied"


def test_evidence_holds_no_values_of_variables_and_only_get_and_list_were_asked():
    sheet = gathered({"pods": [POD]}).sheet("pods")
    assert b"hunter2" not in sheet.data() and b"PASSWORD" in sheet.data() and b"managedFields" not in sheet.data()
    estate = Estate({})
    collect(estate, PROFILE.resources, lambda: "2026-11-30T12:00:00Z", {})
    assert {verb for verb, _ in estate.asked} == {"get", "list"}


def test_verdicts_repeat_byte_for_byte_from_the_files(tmp_path):
    first = gathered({"pods": [POD]}, refuses=("jobs.batch",))
    facts.write(first, tmp_path, {"name": "cis-k8s", "version": "1.12", "sha256": "0"})
    again, kept = facts.read(tmp_path)
    assert kept["name"] == "cis-k8s" and assess(PROFILE, again) == assess(PROFILE, first)


def test_changed_evidence_is_refused(tmp_path):
    facts.write(gathered({"pods": [POD]}), tmp_path, {"name": "cis-k8s", "version": "1.12", "sha256": "0"})
    file = tmp_path / "facts" / "pods.json"
    file.write_text(file.read_text().replace('"hostPID": true', '"hostPID": false'))
    with pytest.raises(UsageError, match=r"evidence was changed or is missing: facts/pods\.json"):
        facts.read(tmp_path)


def test_an_estate_that_ends_on_the_way_leaves_a_gap_and_no_silence():
    class Dying(Estate):
        def list(self, resource, namespace="", **selectors):
            raise EnvironmentFault("the cluster does not answer", seen="https://x")

    found = collect(Dying({}), PROFILE.resources, lambda: "2026-11-30T12:00:00Z", {})
    assert all("does not answer" in sheet.error for sheet in found.sheets)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("schema: itbench/exceptions/v1\nexceptions: [{control: 5.2.99}]", "subject: required field is missing"),
        ("schema: wrong\nexceptions: []", "schema"),
        (
            "schema: itbench/exceptions/v1\nexceptions: [{control: '5.2.99', subject: a, reason: long enough text, "
            "approver: me, expires: 2027-01-01}]",
            "5.2.99",
        ),
    ],
)
def test_a_bad_exceptions_file_is_a_usage_error_with_the_place(tmp_path, text, message):
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=message.replace(".", r"\.")):
        exceptions.read(str(file), [control.id for control in PROFILE.controls])
    with pytest.raises(UsageError, match="no such exceptions file"):
        exceptions.read(str(tmp_path / "absent"), [])


def test_record_ids_are_equal_in_equal_runs_and_distinct():
    one, two = judged({"pods": [POD]}), judged({"pods": [POD]})
    assert [v.id for v in one.verdicts] == [v.id for v in two.verdicts]
    assert len({v.id for v in one.verdicts}) == len(one.verdicts)
    assert json.loads(one.model_dump_json()) == json.loads(two.model_dump_json())
