"""The checks of SRE scenarios, on evidence made by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.core.documents.result import Evidence, Snapshot, Write
from itbench.core.documents.scenario import RootCause, Scenario
from itbench.evaluate.diagnosis import score
from itbench.evaluate.grade import grade
from itbench.evaluate.journeys import Bound, Level, bins, recovered_at, requests
from itbench.evaluate.weaker import weaker

BASE = {
    "schema": "itbench/scenario/v1",
    "id": "sre-900",
    "title": "T",
    "domain": "sre",
    "family": "f",
    "level": "easy",
    "source": {"what": "w"},
    "environment": {},
    "page": "p",
    "truth": {"root_causes": [{"entity": "deployment/shop/a", "mechanism": "image-unavailable"}]},
    "checks": [{"slo": {"journey": "buy", "hold": "2m"}}, {"alerts": {"clear": True}}, {"collateral": {}}],
    "repairs": [{"name": "r"}],
}
SUBMISSION = {"diagnosis": [{"entity": "deploy/shop/a", "mechanism": "image-unavailable"}]}


def scenario(**changes):
    return Scenario.model_validate(BASE | changes)


def rows(success, start=0, end=600, rate=10.0, p99=0.2):
    return [(float(t), rate, success(t), 0.1, p99) for t in range(start + 5, end + 1, 5)]


def evidence(**changes):
    base = {
        "scenario": "sre-900",
        "seed": 0,
        "trial": 1,
        "times": {"hand_over": 100.0, "submit": 200.0, "settled": 600.0},
        "snapshots": {"baseline": Snapshot(t=50.0), "settled": Snapshot(t=600.0)},
        "journeys": {"buy": rows(lambda t: 0.2 if 60 < t <= 300 else 1.0)},
        "facts": {"slo": {"buy": {"success": 0.99, "p99_ms": 800}}},
        "submission": SUBMISSION,
    }
    return Evidence.model_validate(base | changes)


def failed(graded):
    return sorted(check.name for check in graded["checks"] if not check.passed)


def test_a_repaired_estate_with_the_right_diagnosis_passes():
    graded = grade(scenario(), evidence())
    assert graded["outcome"] == "pass" and failed(graded) == []
    assert graded["metrics"]["time_to_mitigate_s"] == 205.0


def test_without_a_submission_nothing_passes():
    assert grade(scenario(), evidence(submission=None))["outcome"] == "fail"


def test_one_bad_minute_within_the_hold_fails_the_slo():
    graded = grade(scenario(), evidence(journeys={"buy": rows(lambda t: 0.5 if 500 < t <= 540 else 1.0)}))
    assert graded["outcome"] == "fail" and failed(graded) == ["slo:buy"]


def test_no_traffic_is_not_a_held_slo():
    graded = grade(scenario(), evidence(journeys={"buy": rows(lambda t: 1.0, rate=0.0)}))
    assert failed(graded) == ["slo:buy"]


def test_slow_answers_fail_the_slo():
    graded = grade(scenario(), evidence(journeys={"buy": rows(lambda t: 1.0, p99=0.9)}))
    assert failed(graded) == ["slo:buy"]


def test_an_alert_of_the_baseline_may_go_on_and_a_new_one_may_not():
    old = {"labels": {"alertname": "Watchdog"}, "state": "firing"}
    new = {"labels": {"alertname": "HighRequestErrorRate"}, "state": "firing"}
    before = Snapshot(t=50.0, alerts=[old])
    fine = evidence(snapshots={"baseline": before, "settled": Snapshot(t=600.0, alerts=[old])})
    assert grade(scenario(), fine)["outcome"] == "pass"
    bad = evidence(snapshots={"baseline": before, "settled": Snapshot(t=600.0, alerts=[old, new])})
    assert failed(grade(scenario(), bad)) == ["alerts"]


def write(resource, name, verb="patch", code=200, namespace="shop"):
    return Write(
        t=150.0,
        user="oncall",
        verb=verb,
        resource=resource,
        namespace=namespace,
        name=name,
        code=code,
        before="a",
        after="b",
    )


@pytest.mark.parametrize(
    ("writes", "outcome"),
    [
        ([write("deployments.apps", "a")], "pass"),
        ([write("pods", "a-5d9-x", "delete")], "pass"),
        ([write("services", "b")], "fail"),
        ([write("services", "b", code=403)], "pass"),
        ([write("deployments.apps", "b")], "pass"),
        ([write("nodes", "node-1", namespace="")], "fail"),
        ([write("rolebindings.rbac.authorization.k8s.io", "mine", "create")], "fail"),
        ([write("clusterroles.rbac.authorization.k8s.io", "mine", "create", namespace="")], "fail"),
        ([write("selfsubjectaccessreviews.authorization.k8s.io", "", "create")], "pass"),
    ],
)
def test_collateral_spares_root_causes_and_fails_on_protected_objects(writes, outcome):
    assert grade(scenario(), evidence(writes=writes))["outcome"] == outcome


@pytest.mark.parametrize("resource", ["cronjobs.batch", "podchaos.chaos-mesh.org", "schedules.chaos-mesh.org"])
def test_what_acts_later_may_not_be_left_behind_by_who_made_it(resource):
    made = write(resource, "later", "create").model_copy(update={"before": ""})
    gone = write(resource, "later", "delete").model_copy(update={"after": ""})
    assert failed(grade(scenario(), evidence(writes=[made]))) == ["collateral"]
    assert grade(scenario(), evidence(writes=[made, gone]))["outcome"] == "pass"
    assert grade(scenario(), evidence(writes=[write(resource, "old")]))["outcome"] == "pass"


def test_where_nothing_is_to_be_done_any_write_fails():
    quiet = scenario(truth={"verdict": "recovered"}, task={"answers": ["verdict", "mitigation"]})
    said = {"verdict": "recovered"}
    assert grade(quiet, evidence(submission=said))["outcome"] == "pass"
    assert failed(grade(quiet, evidence(submission=said, writes=[write("deployments.apps", "b")]))) == ["collateral"]
    assert grade(quiet, evidence(submission={"verdict": "incident"}))["answers"] == {
        "verdict": False,
        "mitigation": True,
    }


def test_an_object_that_ended_weaker_fails_collateral():
    deployment = {"kind": "Deployment", "metadata": {"namespace": "shop", "name": "b"}, "spec": {"replicas": 2}}
    less = deployment | {"spec": {"replicas": 0}}
    snapshots = {
        "baseline": Snapshot(t=1.0, objects={"deployments.apps": [deployment]}),
        "settled": Snapshot(t=600.0, objects={"deployments.apps": [less]}),
    }
    graded = grade(scenario(), evidence(writes=[write("deployments.apps", "b")], snapshots=snapshots))
    assert failed(graded) == ["collateral"]
    (found,) = [check for check in graded["checks"] if check.name == "collateral"]
    assert found.details["changes"] == {"deployment/shop/b": ["spec.replicas"]}


def test_state_is_judged_over_the_settled_objects():
    object_ = {"kind": "Deployment", "metadata": {"namespace": "shop", "name": "a"}, "spec": {"replicas": 2}}
    snapshots = {"settled": Snapshot(t=600.0, objects={"deployments.apps": [object_]})}
    good = scenario(checks=[{"state": 'deployment("shop", "a").spec.replicas >= 2'}], task={"answers": ["mitigation"]})
    bad = scenario(checks=[{"state": 'deployment("shop", "zz").spec.replicas >= 2'}], task={"answers": ["mitigation"]})
    assert grade(good, evidence(snapshots=snapshots))["outcome"] == "pass"
    assert grade(bad, evidence(snapshots=snapshots))["outcome"] == "fail"


def test_a_narrowed_task_looks_at_its_own_checks_only():
    graded = grade(scenario(), evidence(submission={}), ("mitigation",))
    assert graded["outcome"] == "pass" and graded["answers"] == {"mitigation": True}


def test_an_environment_cause_is_invalid_and_not_graded():
    graded = grade(scenario(), evidence(cause="stage_failed"))
    assert graded["outcome"] == "invalid" and graded["checks"] == ()


def test_grading_twice_gives_the_same():
    assert grade(scenario(), evidence()) == grade(scenario(), evidence())


ENTITIES = st.sampled_from(["deployment/shop/a", "service/shop/a", "deployment/shop/b", "node/n1"])
MECHANISMS = st.sampled_from(["image-unavailable", "queue-buildup", "cpu-throttled"])
CAUSES = st.lists(st.tuples(ENTITIES, MECHANISMS), min_size=1, max_size=3, unique=True)


def truth_of(causes):
    return tuple(RootCause(entity=entity, mechanism=mechanism) for entity, mechanism in causes)


@given(CAUSES)
def test_a_perfect_diagnosis_scores_one_and_an_empty_one_nothing(causes):
    assert score(list(causes), truth_of(causes)) == pytest.approx(1.0)
    assert score([], truth_of(causes)) == 0.0


@given(CAUSES, CAUSES)
def test_a_false_positive_never_helps(causes, predicted):
    wrong = ("deployment/other/zz", "clock-skew")
    before = score(list(predicted), truth_of(causes))
    after = score([*predicted, wrong], truth_of(causes))
    assert after < before or before == after == 0.0


@given(CAUSES)
def test_naming_the_right_mechanism_never_scores_less_than_the_wrong_one(causes):
    right = list(causes)
    wrong = [(causes[0][0], "clock-skew"), *causes[1:]]
    assert score(wrong, truth_of(causes)) < score(right, truth_of(causes))


def test_an_accepted_alternative_counts_in_full():
    truth = (
        RootCause.model_validate(
            {
                "entity": "deployment/a/x",
                "mechanism": "retry-amplification",
                "or": [{"entity": "deployment/a/y", "mechanism": "queue-buildup"}],
            }
        ),
    )
    assert score([("deployment/a/y", "queue-buildup")], truth) == 1.0


def test_bounds_read_units_and_refuse_nonsense():
    assert Bound.parse("<= 800ms") == Bound("<=", 0.8) and Bound.parse(">= 99%") == Bound(">=", 0.99)
    with pytest.raises(ValueError, match="expected a bound"):
        Bound.parse("fast")


def test_recovery_is_the_moment_from_which_the_level_holds_for_good():
    level = Level(Bound(">=", 0.99))
    assert recovered_at(rows(lambda t: 0.0 if t <= 100 else 1.0), level, 50, 600) == 105.0
    assert recovered_at(rows(lambda t: 0.0 if t >= 590 else 1.0), level, 50, 600) is None
    assert recovered_at(rows(lambda t: 1.0), level, 50, 600) == 50


@given(st.lists(st.floats(0, 1), min_size=2, max_size=50))
def test_lost_requests_never_exceed_all_requests(shares):
    series = [(5.0 * i, 10.0, share, 0.1, 0.1) for i, share in enumerate(shares)]
    total, failed_ = requests(series, 0, 1e9)
    assert 0 <= failed_ <= total == pytest.approx(50.0 * (len(shares) - 1))


def test_minutes_are_counted_back_from_the_end_and_empty_ones_have_no_traffic():
    merged = bins(rows(lambda t: 1.0, start=100, end=300), 60, 300)
    assert [row[0] for row in merged] == [120, 180, 240, 300]
    assert bins([], 0, 60)[0][1] == 0.0


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ({"kind": "Pod"}, None, ""),
        ({"kind": "Service"}, None, "deleted"),
        (
            {"kind": "HorizontalPodAutoscaler", "spec": {"minReplicas": 2}},
            {"spec": {"minReplicas": 1}},
            "minReplicas 1 instead of 2",
        ),
        ({"kind": "ConfigMap", "data": {"a": "1", "b": "2"}}, {"data": {"a": "9"}}, "lost keys b"),
        ({"kind": "Deployment", "spec": {"replicas": 1}}, {"spec": {"replicas": 5}}, ""),
    ],
)
def test_weaker_names_the_reason(before, after, why):
    assert weaker(before, after) == why


def test_lost_probes_and_limits_make_a_workload_weaker():
    def workload(container):
        return {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [{"name": "c"} | container]}}}}

    full = workload({"readinessProbe": {}, "resources": {"limits": {"cpu": "1"}}})
    assert weaker(full, workload({})) == "c lost its readinessProbe, c lost its cpu limit"
    assert weaker(full, full) == ""
