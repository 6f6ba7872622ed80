"""The hidden fixtures: right by construction, drawn from the seed, API-valid, and able to tell policies apart."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from itbench.core.ids import Ids
from itbench.engines.rego import Evaluation, policy
from itbench.kube.client import ApiError
from itbench.kube.plane import ControlPlane
from itbench.kube.remote import RemoteClient
from itbench.library.store import Library
from itbench.policy.fixtures import KINDS, fixtures, judge, listing, result_of, second_cluster, truth

FOLDER = Library().scenario("ciso-3").folder
RIGHT, START = ((FOLDER / name / "policy.rego").read_text() for name in ("right", "start"))
RESOURCE = {kind: resource for resource, (_, kind) in KINDS.items()} | {"Namespace": "namespaces"}
REAL = os.environ.get("ITBENCH_REAL", "")


def by_resource(items):
    found = {}
    for item in items:
        found.setdefault(RESOURCE[item["kind"]], []).append(item)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_verdict_of_construction_agrees_with_our_own_controls(seed):
    matrix = fixtures(seed)
    for fixture in matrix:
        if fixture.verdict != "not_assessed":
            assert truth(by_resource(fixture.given["items"])) == tuple(sorted(fixture.violations)), fixture.id
    counts = [sum(f.verdict == v for f in matrix) for v in ("not_satisfied", "satisfied", "not_assessed")]
    assert counts[0] >= 6 and counts[1] >= 6 and counts[2] >= 2
    assert len({fixture.id for fixture in matrix}) == len(matrix)


def test_names_and_order_change_with_the_seed_and_with_nothing_else():
    assert fixtures(1) == fixtures(1) and second_cluster(1) == second_cluster(1)
    assert [f.id for f in fixtures(1)] != [f.id for f in fixtures(2)]
    lists = [[f.given for f in fixtures(seed) if f.verdict != "not_assessed"] for seed in (1, 2)]
    names = [{item["metadata"].get("name") for given in each for item in given["items"]} for each in lists]
    assert names[0] != names[1]


def test_the_hidden_cluster_has_an_empty_namespace_and_both_sorts_of_workloads():
    objects = second_cluster(3)
    spaces = {obj["metadata"]["name"] for obj in objects if obj["kind"] == "Namespace"}
    used = {obj["metadata"]["namespace"] for obj in objects if obj["kind"] != "Namespace"}
    assert used < spaces
    bad = truth(by_resource(objects))
    assert 6 <= len(bad) <= sum(obj["kind"] != "Namespace" for obj in objects) - 6


def test_an_api_server_accepts_every_object_of_the_hidden_cluster():
    plane = ControlPlane(ids=Ids(0))
    client = plane.client("test", "system:test")
    for obj in second_cluster(0):
        if obj["kind"] == "Pod":
            plane.run(plane.now)
        client.create(RESOURCE[obj["kind"]], obj)


@pytest.mark.parametrize("seed", [0, 7])
def test_the_reference_policy_is_right_everywhere_and_the_start_is_not(seed):
    with policy(RIGHT, "data.check.result") as rego:
        assert [row["id"] for row in judge(rego.evaluate, fixtures(seed)) if not row["right"]] == []
    with policy(START, "data.check.result") as rego:
        wrong = [row for row in judge(rego.evaluate, fixtures(seed)) if not row["right"]]
    assert {row["expected"] for row in wrong} >= {"not_satisfied", "not_assessed"}


def policy_of(plan):
    """The policy that a repair or decoy leaves: its own, or the one of the start."""
    texts = [step.spec["content"] for step in plan.steps if step.kind == "file" and step.spec["path"] == "policy.rego"]
    return texts[-1] if texts else START


def test_every_repair_is_right_on_the_fixtures_and_every_decoy_that_they_must_catch_is_not():
    scenario = Library().scenario("ciso-3").scenario
    with policy(RIGHT, "data.check.result") as rego:
        for plan in (*scenario.repairs, *scenario.decoys):
            rows = judge(rego.variant(policy_of(plan)).evaluate, fixtures(0))
            wrong = {row["expected"] for row in rows if not row["right"]}
            sorts = {"detect": "not_satisfied", "permit": "satisfied"}
            caught = getattr(plan, "caught_by", "")
            if not caught:
                assert not wrong, plan.name
            elif caught in sorts:
                assert sorts[caught] in wrong, plan.name


@pytest.mark.parametrize("state", ["satisfied", "not_satisfied", "not_assessed"])
def test_no_constant_is_right_on_more_than_its_own_sort(state):
    rows = judge(lambda given: Evaluation({"state": state, "violations": []}), fixtures(0))
    assert all(row["expected"] == state for row in rows if row["right"])
    assert not all(row["right"] for row in rows)


MUTANTS = [
    ('object.kind == "Pod"', 'object.kind == "Pods"'),
    ('"Deployment", ', ""),
    ('"DaemonSet", ', ""),
    ('"StatefulSet", ', ""),
    ('"ReplicaSet", ', ""),
    ('"ReplicationController", ', ""),
    (', "Job"}', "}"),
    ("object.spec.jobTemplate.spec.template.spec", "object.spec.template.spec"),
    ("shares(spec) if spec.hostPID == true", "shares(spec) if false"),
    ("shares(spec) if spec.hostIPC == true", "shares(spec) if false"),
    ("spec.hostPID == true", "spec.hostPID != true"),
    ("spec.hostIPC == true", 'object.get(spec, "hostIPC", null) != null'),
    ("\tnot made(item)\n", ""),
    ("owner.controller == true", "owner.controller == false"),
    ("\tis_array(input.items)\n", ""),
    ("\t\tis_object(spec_of(item))\n", "\t\tis_object(item)\n"),
    ('object.get(item.metadata, "name", "")', "item.metadata.name"),
    ('default result := {"state": "not_assessed"', 'default result := {"state": "satisfied"'),
    ("\tcount(violations) == 0\n", "\tcount(violations) <= 1\n"),
    ("\tcount(violations) > 0\n", "\tcount(violations) > 1\n"),
    ('"namespace": item.metadata.namespace', '"namespace": ""'),
]


@pytest.mark.slow
def test_weakened_reference_policies_are_caught():
    survived = []
    with policy(RIGHT, "data.check.result") as rego:
        for old, new in MUTANTS:
            mutant = rego.variant(RIGHT.replace(old, new))
            assert old in RIGHT
            if all(judge(mutant.evaluate, [fixture])[0]["right"] for fixture in fixtures(0)):
                survived.append(old)
    assert survived == []


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        [],
        {},
        {"state": "ok"},
        {"state": "satisfied", "violations": {}},
        {"state": "satisfied", "violations": [1]},
    ],
)
def test_a_result_of_another_form_is_refused_with_a_reason(value):
    with pytest.raises(ValueError, match=r"state|violations"):
        result_of(value)
    (row, *_) = judge(lambda given: Evaluation(value), fixtures(0))
    assert row["state"] == "artifact_error" and not row["right"]


def test_violations_may_come_in_any_order_and_with_more_keys():
    one, two = ({"kind": "Pod", "namespace": "n", "name": name, "field": "hostPID"} for name in "ab")
    assert result_of({"state": "not_satisfied", "violations": [two, one]})[1] == (("Pod", "n", "a"), ("Pod", "n", "b"))
    assert listing()["items"] == []


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="ITBENCH_REAL is not set: no real control plane to ask")
def test_a_real_api_server_accepts_every_fixture():
    folder = Path(tempfile.mkdtemp(prefix="itbench-fixtures-"))
    program = [sys.executable, f"{REAL}/cluster.py"]
    try:
        subprocess.run([*program, "up", str(folder)], check=True, capture_output=True, timeout=120)
        client = RemoteClient(str(folder / "kubeconfig"))
        refused = []
        for obj in [*second_cluster(0), *_items(0)]:
            if obj["kind"] == "Pod":
                _await_account(client, obj["metadata"]["namespace"])
            try:
                client.create(RESOURCE[obj["kind"]], obj)
            except ApiError as error:
                refused.append((obj["metadata"], str(error)))
        client.close()
        assert refused == []
    finally:
        subprocess.run([*program, "down", str(folder)], check=False, capture_output=True, timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


def _await_account(client, namespace):
    """Pods need the account that a controller makes shortly after its namespace."""
    for _ in range(100):
        if client.list("serviceaccounts", namespace):
            return
        time.sleep(0.1)


def _items(seed):
    """What the fixtures list, with their namespaces; owner references without a maker are the server's to remove."""
    items = [item for f in fixtures(seed) if f.verdict != "not_assessed" for item in f.given["items"]]
    spaces = {item["metadata"]["namespace"] for item in items} - {o["metadata"]["name"] for o in second_cluster(seed)}
    yield from ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(spaces))
    for item in items:
        meta = {key: value for key, value in item["metadata"].items() if key != "ownerReferences"}
        meta |= {"name": "f-" + meta["name"]} if "name" in meta else {}
        yield {**item, "metadata": meta}
