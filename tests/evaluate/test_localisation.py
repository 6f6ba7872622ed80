"""The score of a diagnosis: what it promises on any estate, and how near objects are."""

from itertools import pairwise, permutations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from itbench.core.documents.result import Evidence, Snapshot
from itbench.core.documents.scenario import RootCause, Scenario
from itbench.evaluate.credit import Scheme, best_matching, partial_credit
from itbench.evaluate.diagnosis import DiagnosisSpec, grade_diagnosis
from itbench.evaluate.grade import grade
from itbench.evaluate.localisation import chain_score, chance, levels, precision, score
from itbench.evaluate.registry import Case
from itbench.evaluate.topology import Topology, entity_of, topology

NAMES = [f"deployment/shop/e{i}" for i in range(12)]
WORDS = ["queue-buildup", "cpu-throttled", "port-mismatch"]

entities, mechanisms = st.sampled_from(NAMES), st.sampled_from(WORDS)
named = st.tuples(entities, mechanisms)
answers = st.lists(named, max_size=5, unique=True)
estates = st.lists(st.tuples(entities, entities), max_size=24).map(Topology)
truths = st.lists(named, min_size=1, max_size=3, unique_by=lambda each: each[0]).map(
    lambda pairs: tuple(RootCause(entity=entity, mechanism=mechanism) for entity, mechanism in pairs)
)


def pairs(truth):
    """A truth as an answer."""
    return [(cause.entity, cause.mechanism) for cause in truth]


def hit(answer, truth):
    """Whether an entry names a true entity."""
    return answer[0] in {cause.entity for cause in truth}


@given(answers, truths, estates)
def test_a_score_lies_between_nothing_and_one_and_only_the_truth_has_one(answer, truth, estate):
    found = score(answer, truth, estate)
    assert 0 <= found <= 1
    assert (found == 1) == (sorted(answer) == sorted(pairs(truth)))
    assert score([], truth, estate) == 0 and score(pairs(truth), truth, estate) == 1


@given(answers.filter(bool), truths, estates, named)
def test_a_false_positive_never_helps(answer, truth, estate, wrong):
    assume(not hit(wrong, truth))
    assert score([*answer, wrong], truth, estate) <= score(answer, truth, estate) + 1e-12


@given(truths, estates, st.lists(named, min_size=1, max_size=4))
def test_surplus_entries_beside_the_whole_truth_always_cost(truth, estate, more):
    answer = pairs(truth)
    assume(any(each not in answer for each in more))
    assert score([*answer, *more], truth, estate) < 1


@given(answers, truths, estates, named, named)
def test_moving_an_entry_nearer_never_hurts(answer, truth, estate, far, near):
    """Nearer: to every cause at most as many steps, with the mechanism of the other entry."""
    near = (near[0], far[1])
    assume(not hit(far, truth) and far not in answer and near not in answer)
    found = {cause.entity for cause in truth if any(each[0] == cause.entity for each in answer)}
    assume(near[0] not in found)
    for cause in truth:
        steps = [estate.distance(each[0], cause.entity) for each in (far, near)]
        assume((9 if steps[1] is None else steps[1]) <= (9 if steps[0] is None else steps[0]))
    assert score([*answer, near], truth, estate) >= score([*answer, far], truth, estate) - 1e-12


@given(answers, truths, estates)
def test_a_missing_cause_named_at_last_never_hurts(answer, truth, estate):
    for cause in truth:
        if not any(each[0] == cause.entity for each in answer):
            better = score([*answer, (cause.entity, cause.mechanism)], truth, estate)
            assert better >= score(answer, truth, estate) - 1e-12


@given(answers, truths, estates, st.randoms(use_true_random=False))
def test_the_order_of_an_answer_and_repetitions_are_nothing(answer, truth, estate, random):
    shuffled = [*answer, *answer]
    random.shuffle(shuffled)
    assert score(shuffled, truth, estate) == score(answer, truth, estate)


@given(answers, truths, st.lists(st.tuples(entities, entities), max_size=24), st.permutations(NAMES))
def test_names_are_nothing(answer, truth, edges, other):
    new = dict(zip(NAMES, other))
    renamed = Topology((new[one], new[two]) for one, two in edges)
    moved = tuple(RootCause(entity=new[cause.entity], mechanism=cause.mechanism) for cause in truth)
    again = score([(new[entity], mechanism) for entity, mechanism in answer], moved, renamed)
    assert again == score(answer, truth, Topology(edges))


@given(truths, estates, mechanisms)
def test_a_right_entity_without_its_mechanism_is_worth_half_and_a_right_mechanism_elsewhere_less(truth, estate, word):
    (cause,) = truth[:1]
    assume(cause.mechanism != word)
    assert score([(cause.entity, word)], (cause,), estate) == 0.5
    for entity in NAMES:
        if entity != cause.entity:
            assert score([(entity, cause.mechanism)], (cause,), estate) in (0.0, 0.125, 0.25)


@given(truths, estates)
def test_what_is_not_in_the_estate_is_worth_nothing(truth, estate):
    assert score([("node/elsewhere", truth[0].mechanism)], truth, estate) == 0


@given(st.integers(20, 60), st.integers(0, 59), st.data())
def test_naming_everything_is_worth_less_than_one_near_miss(size, at, data):
    ring = [f"deployment/shop/r{i}" for i in range(size)]
    estate = Topology(zip(ring, [*ring[1:], ring[0]]))
    true, word = ring[at % size], data.draw(mechanisms)
    truth = (RootCause(entity=true, mechanism=word),)
    miss = ring[(at + data.draw(st.sampled_from([-2, -1, 1, 2]))) % size]
    said = data.draw(mechanisms)
    assert score([(each, said) for each in ring], truth, estate) < score([(miss, said)], truth, estate)


@given(answers, estates)
def test_where_nothing_is_wrong_only_an_answer_that_names_nothing_is_right(answer, estate):
    assert score(answer, (), estate) == float(not answer)
    quiet = [(entity, "none") for entity, _ in answer]
    assert score(quiet, (), estate) == 1 and score(quiet, (RootCause(entity=NAMES[0], mechanism="herd"),), estate) == 0


@given(answers, truths, estates)
def test_the_levels_imply_each_other(answer, truth, estate):
    found = levels(answer, truth, estate)
    assert found.identified <= found.localised <= found.detected == bool(answer)
    assert found.score <= found.localisation_score + 1e-12 and 0 <= found.chance <= 1
    assert found.localised <= (found.precision == 1) and found.chain is None


@given(answers, truths, estates)
def test_precision_is_nothing_when_a_cause_is_missed(answer, truth, estate):
    given_, true = {entity for entity, _ in answer}, {cause.entity for cause in truth}
    assert precision(answer, truth, estate) == (len(true) / len(given_) if true <= given_ else 0)


paths = st.lists(st.lists(entities, max_size=4), max_size=3)


@given(paths, paths, entities, entities)
def test_a_chain_gains_by_true_edges_and_never_by_false_ones(said, true, one, two):
    def edges(listed):
        return {(a, b) for path in listed for a, b in pairwise(path) if a != b}

    before, after = (chain_score(each, true, Topology()) for each in (said, [*said, [one, two]]))
    if (one, two) in edges(true):
        assert after >= before
    else:
        assert after <= before
    assert chain_score(true, true, Topology()) == 1


def test_an_edge_that_is_turned_round_is_no_hit():
    assert chain_score([["node/a", "node/b"]], [["node/b", "node/a"]], Topology()) == 0


def test_chance_is_the_mean_over_the_entities_of_the_estate():
    estate = Topology([("node/a", "deployment/x/b"), ("deployment/x/b", "deployment/x/c")])
    truth = (RootCause(entity="node/a", mechanism="node-lost"),)
    assert chance(truth, estate) == pytest.approx((1 + 0.25 + 0.125) / 3)


# -- matching ----------------------------------------------------------------------------------------------------------


@given(st.integers(1, 5), st.integers(1, 5), st.data())
def test_the_matching_is_the_best_of_all(rows, columns, data):
    table = [[data.draw(st.sampled_from([0, 0.25, 0.5, 1.0])) for _ in range(columns)] for _ in range(rows)]
    found = best_matching(table)
    assert len({i for i, _ in found}) == len({j for _, j in found}) == len(found)
    turned = table if rows <= columns else [list(each) for each in zip(*table)]
    best = max(
        sum(row[j] for row, j in zip(turned, chosen)) for chosen in permutations(range(max(rows, columns)), len(turned))
    )
    assert sum(table[i][j] for i, j in found) == pytest.approx(best)


def test_credit_needs_a_truth_and_a_number_of_answers_may_be_demanded():
    strict = Scheme(lambda one, two: float(one == two), same_number=True)
    assert partial_credit(["a"], ["a", "b"], strict).score == 0
    assert partial_credit(["b", "a"], ["a", "b"], strict).score == 1
    with pytest.raises(ValueError, match="at least one truth"):
        partial_credit(["a"], [], strict)


# -- the estate --------------------------------------------------------------------------------------------------------


def obj(kind, name, spec=None, owner=None, labels=None, namespace="shop"):
    """An object as evidence holds it."""
    meta = {"name": name, "namespace": namespace, "labels": labels or {}}
    if owner:
        meta["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    return {"kind": kind, "metadata": meta, "spec": spec or {}}


def workload(name, **pod):
    """A deployment whose pods are labelled with its name."""
    return obj("Deployment", name, {"template": {"metadata": {"labels": {"app": name}}, "spec": pod}})


SHOP = {
    "deployments.apps": [
        workload("front", containers=[{"env": [{"name": "CART", "value": "http://cart:80"}]}]),
        workload("cart", containers=[{"envFrom": [{"configMapRef": {"name": "settings"}}]}],
                 volumes=[{"persistentVolumeClaim": {"claimName": "disk"}}], serviceAccountName="robot"),
    ],
    "replicasets.apps": [obj("ReplicaSet", "cart-5d", owner=("Deployment", "cart"))],
    "pods": [obj("Pod", "cart-5d-x", {"nodeName": "n1"}, ("ReplicaSet", "cart-5d"), {"app": "cart"})],
    "services": [obj("Service", "cart", {"selector": {"app": "cart"}}), obj("Service", "other", {})],
    "configmaps": [obj("ConfigMap", "settings")],
    "persistentvolumeclaims": [obj("PersistentVolumeClaim", "disk", {"volumeName": "pv1"})],
    "persistentvolumes": [obj("PersistentVolume", "pv1")],
    "nodes": [obj("Node", "n1")],
    "horizontalpodautoscalers.autoscaling": [
        obj("HorizontalPodAutoscaler", "cart-hpa", {"scaleTargetRef": {"kind": "Deployment", "name": "cart"}})
    ],
    "poddisruptionbudgets.policy": [
        obj("PodDisruptionBudget", "budget", {"selector": {"matchLabels": {"app": "cart"}}})
    ],
    "networkpolicies.networking.k8s.io": [
        obj("NetworkPolicy", "wall", {"podSelector": {"matchLabels": {"app": "cart"}}}),
        obj("NetworkPolicy", "all", {"podSelector": {}}),
    ],
    "ingresses.networking.k8s.io": [
        obj("Ingress", "door", {"rules": [{"http": {"paths": [{"backend": {"service": {"name": "cart"}}}]}}]})
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("one", "two", "steps"),
    [
        ("pod/shop/cart-5d-x", "deployment/shop/cart", 0),
        ("replicaset/shop/cart-5d", "pod/shop/cart-5d-x", 0),
        ("service/shop/cart", "deployment/shop/cart", 1),
        ("configmap/shop/settings", "deployment/shop/cart", 1),
        ("horizontalpodautoscaler/shop/cart-hpa", "deployment/shop/cart", 1),
        ("poddisruptionbudget/shop/budget", "deployment/shop/cart", 1),
        ("networkpolicy/shop/wall", "deployment/shop/cart", 1),
        ("networkpolicy/shop/all", "deployment/shop/cart", None),
        ("ingress/shop/door", "service/shop/cart", 1),
        ("deployment/shop/front", "service/shop/cart", 1),
        ("deployment/shop/front", "deployment/shop/cart", 2),
        ("persistentvolumeclaim/shop/disk", "persistentvolume/pv1", 1),
        ("node/n1", "deployment/shop/cart", 1),
        ("service/shop/other", "deployment/shop/cart", None),
    ],
)
def test_neighbours_are_what_names_selects_mounts_scales_or_calls(one, two, steps):
    estate = topology([SHOP])
    assert estate.distance(one, two) == estate.distance(two, one) == steps


def test_what_touches_everything_and_where_things_are_bring_nothing_near():
    hub = Topology(("service/shop/hub", name) for name in NAMES)
    assert hub.distance(NAMES[0], NAMES[1]) is None and hub.distance("service/shop/hub", NAMES[1]) == 1
    place = Topology(("node/n1", name) for name in NAMES[:2])
    assert place.distance(NAMES[0], NAMES[1]) is None


def test_a_true_chain_is_a_way():
    estate = topology([], [["configmap/shop/flags", "deployment/shop/cart", "journey/buy"]])
    assert estate.distance("configmap/shop/flags", "journey/buy") == 2


def test_an_entity_of_the_whole_cluster_has_no_namespace():
    assert entity_of(obj("Node", "n1")) == "node/n1" and entity_of(obj("Pod", "p")) == "pod/shop/p"


# -- the check ---------------------------------------------------------------------------------------------------------

BASE = {
    "schema": "itbench/scenario/v1", "id": "sre-900", "title": "T", "domain": "sre", "family": "f", "level": "easy",
    "source": {"what": "w"}, "environment": {}, "page": "p", "checks": [{"diagnosis": {}}], "repairs": [{"name": "r"}],
    "truth": {"root_causes": [{"entity": "deployment/shop/cart", "mechanism": "queue-buildup"}],
              "chain": [["deployment/shop/cart", "journey/buy"]]},
}  # fmt: skip


def graded(diagnosis, spec=None, truth=None, **more):
    """The finding on an answer."""
    scenario = Scenario.model_validate(BASE | ({"truth": truth} if truth else {}))
    evidence = Evidence(
        scenario="sre-900", seed=0, trial=1, times={}, snapshots={"hand_over": Snapshot(t=1.0, objects=SHOP)},
        submission={"diagnosis": [{"entity": e, "mechanism": m} for e, m in diagnosis], **more},
    )  # fmt: skip
    return grade_diagnosis(DiagnosisSpec.model_validate(spec or {}), Case(scenario, evidence, ("diagnosis",)))


def test_a_pod_stands_for_its_deployment_and_two_pods_are_one():
    assert graded([("pod/shop/cart-5d-x", "queue-buildup"), ("replicaset/shop/cart-5d", "queue-buildup")]).passed


@pytest.mark.parametrize(
    ("diagnosis", "passes", "value"),
    [
        ([("deployment/shop/cart", "queue-buildup")], {"detection", "localisation", "mechanism"}, 1.0),
        ([("deployment/shop/cart", "herd")], {"detection", "localisation"}, 0.5),
        ([("service/shop/cart", "queue-buildup")], {"detection"}, 0.25),
        ([("deployment/shop/front", "queue-buildup")], {"detection"}, 0.125),
        ([], set(), 0.0),
    ],
)
def test_a_check_passes_at_its_level(diagnosis, passes, value):
    for level in ("detection", "localisation", "mechanism"):
        found = graded(diagnosis, {"level": level})
        assert found.passed == (level in passes) and found.score == value


def test_a_chain_is_asked_for_only_where_the_check_says_so():
    right = [("deployment/shop/cart", "queue-buildup")]
    assert graded(right).passed and not graded(right, {"chain": True}).passed
    whole = graded(right, {"chain": True}, chain=[["deployment/shop/cart", "journey/buy"]])
    assert whole.passed and whole.details["chain_score"] == 1
    assert graded(right).details["chain_score"] == 0


def test_an_answer_that_nothing_is_wrong_is_right_only_where_nothing_is():
    quiet = {"root_causes": [], "verdict": "no-incident"}
    assert graded([], truth=quiet).passed and graded([("node/n1", "none")], truth=quiet).passed
    assert not graded([("node/n1", "node-lost")], {"level": "detection"}, quiet).passed
    assert not graded([("deployment/shop/cart", "none")], {"level": "detection"}).passed


def test_a_diagnosis_is_reported_at_every_level_and_nothing_where_none_was_asked_for():
    scenario = Scenario.model_validate(BASE | {"task": {"answers": ["diagnosis"]}})
    evidence = Evidence(
        scenario="sre-900", seed=0, trial=1, times={}, snapshots={"hand_over": Snapshot(t=1.0, objects=SHOP)},
        submission={"diagnosis": [{"entity": "service/shop/cart", "mechanism": "queue-buildup"}]},
    )  # fmt: skip
    metrics = grade(scenario, evidence)["metrics"]
    assert (metrics["diagnosis_score"], metrics["diagnosis_localisation_score"]) == (0.25, 0.25)
    assert (metrics["diagnosis_detected"], metrics["diagnosis_localised"], metrics["diagnosis_precision"]) == (1, 0, 0)
    assert metrics["diagnosis_chain_score"] == 0 and 0 < metrics["diagnosis_chance"] < 1
    assert not any(name.startswith("diagnosis") for name in grade(scenario, evidence, ("mitigation",))["metrics"])


@pytest.mark.parametrize(("verdict", "told"), [("incident", True), ("recovered", False), ("no-incident", False)])
def test_there_is_no_time_to_mitigate_where_nothing_is_to_be_mitigated(verdict, told):
    scenario = Scenario.model_validate(BASE | {"truth": BASE["truth"] | {"verdict": verdict}})
    evidence = Evidence(
        scenario="sre-900", seed=0, trial=1, times={"hand_over": 0.0, "settled": 60.0},
        journeys={"buy": [(30.0, 5.0, 1.0, 0.1, 0.1)]}, facts={"slo": {"buy": {"success": 0.99}}},
    )  # fmt: skip
    assert ("time_to_mitigate_s" in grade(scenario, evidence)["metrics"]) == told
