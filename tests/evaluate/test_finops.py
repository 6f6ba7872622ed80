"""FinOps checks: savings with guards, reports, causes; each guard fails alone when what it guards is broken."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.core.documents.result import Evidence, Write
from itbench.evaluate import finops
from itbench.evaluate.registry import KINDS, Case

cost = st.floats(0, 1e6)
STILL = "2026-01-30T09:00:00Z"
PLAN = {
    "vol-old": {"name": "old", "role": "waste", "snapshot": True, "still_since": STILL, "why": "", "monthly_usd": 10.0},
    "vol-tmp": {
        "name": "tmp",
        "role": "waste",
        "snapshot": False,
        "still_since": STILL,
        "why": "",
        "monthly_usd": 30.0,
    },
    "vol-hold": {
        "name": "hold",
        "role": "keep",
        "snapshot": True,
        "still_since": STILL,
        "why": "legal hold",
        "monthly_usd": 5.0,
    },
}
SAVED = {"VolumeId": "vol-old", "State": "completed", "StartTime": "2026-03-31T09:05:00Z"}
GOOD = {
    "plan": PLAN,
    "bill": {
        "c0_nano": 100_000_000_000,
        "c1_nano": 60_000_000_000,
        "reference_nano": 60_000_000_000,
        "monthly_saving_usd": 41.0,
    },
    "changes": [
        {"kind": "Volumes", "id": "vol-old", "how": "gone"},
        {"kind": "Volumes", "id": "vol-tmp", "how": "gone"},
        {"kind": "Snapshots", "id": "snap-1", "how": "new"},
    ],
    "inventory": {"Snapshots": [SAVED]},
    "replay": [{"at_h": 9.0, "volume": "vol-hold", "served": True}],
    "gaps": {},
}
CAUSES = [
    {"kind": "usage", "application": "shop", "family": "m5", "since": "2026-03-12", "impact_usd": 1000.0},
    {"kind": "price", "application": "*", "family": "c5", "since": "2026-03-14", "impact_usd": 500.0},
]


def evidence(facts, answer=None, writes=()):
    return Evidence(
        scenario="finops-a03",
        seed=0,
        trial=1,
        times={},
        facts=facts,
        writes=list(writes),
        submission={"answer": answer or {}},
    )


def failed(kind, facts, answer=None, writes=(), **spec):
    model = KINDS[kind]
    found = model.grade(model.spec(**spec), Case(None, evidence(facts, answer, writes), ()))
    findings = [found] if hasattr(found, "passed") else list(found)
    assert findings
    return [finding.label or kind for finding in findings if not finding.passed]


def spoiled(**changed):
    return copy.deepcopy(GOOD) | changed


def test_the_reference_passes_every_guard():
    assert failed("savings", GOOD) == []


def test_doing_nothing_captures_nothing():
    nothing = spoiled(bill=GOOD["bill"] | {"c1_nano": GOOD["bill"]["c0_nano"]}, changes=[])
    assert failed("savings", nothing) == ["captured"]


@pytest.mark.parametrize(
    ("guard", "change"),
    [
        ("data-safety", {"inventory": {"Snapshots": []}}),
        ("data-safety", {"inventory": {"Snapshots": [SAVED | {"StartTime": "2026-01-01T00:00:00Z"}]}}),
        ("data-safety", {"inventory": {"Snapshots": [SAVED | {"State": "pending"}]}}),
        ("policy", {"changes": [*GOOD["changes"], {"kind": "Volumes", "id": "vol-hold", "how": "changed"}]}),
        ("collateral", {"changes": [*GOOD["changes"], {"kind": "Instances", "id": "i-1", "how": "changed"}]}),
        ("collateral", {"changes": [*GOOD["changes"], {"kind": "Snapshots", "id": "snap-0", "how": "gone"}]}),
        ("collateral", {"changes": [*GOOD["changes"], {"kind": "Volumes", "id": "vol-root", "how": "gone"}]}),
        ("demand", {"replay": [{"at_h": 9.0, "volume": "vol-hold", "served": False}]}),
    ],
)
def test_each_guard_fails_alone_when_what_it_guards_is_broken(guard, change):
    assert failed("savings", spoiled(**change)) == [guard]


@pytest.mark.parametrize(
    ("resource", "verb", "fine"),
    [
        ("ec2", "create-snapshot", True),
        ("ec2", "allocate-address", False),
        ("ec2", "modify-snapshot-attribute", False),
        ("s3", "PUT", False),
        ("rds", "create-db-instance", False),
    ],
)
def test_what_the_inventory_does_not_show_is_collateral(resource, verb, fine):
    write = Write(t=1.0, user="oncall", verb=verb, resource=resource, namespace="us-east-1", name="x", code=200)
    assert failed("savings", GOOD, writes=[write]) == ([] if fine else ["collateral"])
    assert failed("savings", GOOD, writes=[write.model_copy(update={"code": 403})]) == []


def test_without_a_bill_in_the_evidence_nothing_passes():
    assert failed("savings", {}) == ["savings"]


def test_no_change_fails_on_any_write_that_succeeded():
    write = Write(
        t=1.0, user="oncall", verb="create-snapshot", resource="ec2", namespace="us-east-1", name="vol-1", code=200
    )
    assert failed("no-change", GOOD) == []
    assert failed("no-change", GOOD, writes=[write]) == ["no-change"]
    assert failed("no-change", GOOD, writes=[write.model_copy(update={"code": 403})]) == []


CLAIMS = [(41.0, True), (36.1, True), (46.5, False), (0, False), ("41", False), (None, False), (True, False)]


@pytest.mark.parametrize(("claim", "honest"), CLAIMS)
def test_a_claim_passes_within_ten_percent_or_five_dollars(claim, honest):
    assert (failed("report", GOOD, {"monthly_saving_usd": claim}) == []) is honest


def test_the_planted_causes_pass_in_any_order_and_with_small_errors():
    near = [CAUSES[1] | {"since": "2026-03-15"}, CAUSES[0] | {"impact_usd": 1060}]
    assert failed("answer", {"causes": CAUSES}, {"causes": near}) == []


@pytest.mark.parametrize(
    ("causes", "wrong"),
    [
        (CAUSES[:1], ["set"]),
        ([*CAUSES, CAUSES[0] | {"family": "r5"}], ["set"]),
        ([*CAUSES, CAUSES[0]], ["set"]),
        ([CAUSES[0] | {"impact_usd": 1200.0}, CAUSES[1]], ["usage shop m5"]),
        ([CAUSES[0] | {"since": "2026-03-01"}, CAUSES[1]], ["usage shop m5"]),
        ([CAUSES[0] | {"since": "soon"}, CAUSES[1]], ["usage shop m5"]),
        ([CAUSES[0] | {"impact_usd": "much"}, CAUSES[1]], ["usage shop m5"]),
        ([], ["set"]),
        ("none", ["answer"]),
        ([1], ["answer"]),
    ],
)
def test_wrong_causes_fail_where_they_are_wrong(causes, wrong):
    assert failed("answer", {"causes": CAUSES}, {"causes": causes}) == wrong


def test_a_twin_wants_the_empty_list_and_an_answer():
    assert failed("answer", {"causes": []}, {"causes": []}) == []
    assert failed("answer", {"causes": []}, {"causes": CAUSES[:1]}) == ["set"]
    assert failed("answer", {"causes": []}, {}) == ["answer"]


@given(cost, cost, cost, cost)
def test_savings_captured_is_bounded_and_falls_with_what_is_left_to_pay(c0, reference, first, second):
    low, high = sorted((first, second))
    left, right = finops.savings_captured(c0, low, reference), finops.savings_captured(c0, high, reference)
    assert -1 <= right <= left <= 1


@given(st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")))
def test_cause_match_is_symmetric_and_one_only_for_equal_sets(left, right):
    a, b = [("usage", name, "m5") for name in left], [("usage", name, "m5") for name in right]
    assert finops.cause_match(a, b) == finops.cause_match(b, a)
    assert (finops.cause_match(a, b) == 1) is (left == right)


@given(st.dictionaries(st.text("abcdef", min_size=1), st.floats(0.01, 1e6), min_size=3, max_size=12))
def test_who_acts_on_all_waste_and_nothing_else_detects_it_exactly_whatever_the_order(waste):
    assert set(finops.waste_detection(list(waste), waste).values()) == {1.0}


def test_the_metrics_of_a_trial_tell_savings_and_compliance():
    metrics = finops.account_metrics(evidence(GOOD))
    assert (metrics["savings_captured"], metrics["savings_usd"], metrics["regret"]) == (1.0, 40.0, 0.0)
    assert (metrics["policy_sensitivity"], metrics["policy_specificity"], metrics["waste_f05"]) == (1.0, 1.0, 1.0)
