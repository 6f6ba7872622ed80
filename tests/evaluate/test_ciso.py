"""Checks of compliance rows: on accounts by reachability, on policies by the matrix."""

import csv

import pytest

from itbench.core.documents.result import Evidence, Snapshot, Write
from itbench.evaluate.ciso import account_symptom
from itbench.evaluate.grade import grade
from itbench.evaluate.policies import policy_metrics
from itbench.library.store import Library
from itbench.run.known import vocabulary

LIBRARY = Library((), vocabulary())
ROW, TWIN = (LIBRARY.scenario(name).scenario for name in ("ciso-40", "ciso-40@twin"))


def group(identity, *permissions):
    return {"GroupId": identity, "GroupName": identity[3:], "IpPermissions": list(permissions)}


def opened(port, *cidrs, to=None):
    return {
        "IpProtocol": "tcp",
        "FromPort": port,
        "ToPort": to or port,
        "IpRanges": [{"CidrIp": cidr} for cidr in cidrs],
    }


def interface(identity, *groups):
    return {"NetworkInterfaceId": identity, "Groups": [{"GroupId": name} for name in groups]}


def inventory(*groups):
    instance = {"InstanceId": "i-1", "State": {"Name": "running"}, "SecurityGroups": [{"GroupId": "sg-a"}]}
    items = {"SecurityGroups": list(groups), "NetworkInterfaces": [interface("eni-1", "sg-a")], "Instances": [instance]}
    return items | {"PrefixLists": [], "LoadBalancers": []}


FLOWS = [{"from": "203.0.113.9", "to": "host", "port": 22}, {"from": "group:b", "to": "host", "port": 22}]
CHECKS = [{"exposure": {"ports": [["tcp", 22]]}}, {"flows": {"flows": FLOWS}}, {"kept": {}}, {"untouched": {}}]
PAIR = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "UserIdGroupPairs": [{"GroupId": "sg-b"}]}
OPEN = inventory(group("sg-a", opened(22, "203.0.113.0/24", "0.0.0.0/0"), PAIR), group("sg-b"))
CLOSED = inventory(group("sg-a", opened(22, "203.0.113.0/24"), PAIR), group("sg-b"))


def results(settled, writes=(), baseline=OPEN):
    scenario = type(ROW).model_validate({**ROW.model_dump(by_alias=True), "checks": CHECKS})
    shots = {"baseline": Snapshot(t=0, objects=baseline)} | (
        {"settled": Snapshot(t=9, objects=settled)} if settled else {}
    )
    names = {"host": "eni-1", "a": "sg-a", "b": "sg-b"}
    evidence = Evidence(scenario="x", seed=0, trial=1, times={}, snapshots=shots, writes=list(writes),
                        submission={"verdict": "violating"}, facts={"names": names})  # fmt: skip
    graded = grade(scenario, evidence)
    return {check.kind: check for check in graded["checks"]}


def passed(settled, **more):
    return {kind for kind, check in results(settled, **more).items() if check.passed and kind != "verdict"}


def test_a_closed_account_in_which_the_plan_works_passes():
    assert passed(CLOSED) == {"exposure", "flows", "kept", "untouched"}


@pytest.mark.parametrize(
    ("settled", "missed"),
    [
        (OPEN, {"exposure"}),
        (inventory(group("sg-a", opened(20, "0.0.0.0/1", "128.0.0.0/1", to=30), PAIR), group("sg-b")), {"exposure"}),
        (inventory(group("sg-a", PAIR), group("sg-b")), {"flows"}),
        (inventory(group("sg-a", opened(22, "203.0.113.0/24")), group("sg-b")), {"flows"}),
        ({**CLOSED, "Instances": []}, {"kept"}),
        ({**CLOSED, "Instances": [{**CLOSED["Instances"][0], "State": {"Name": "stopped"}}]}, {"kept"}),
        (inventory(group("sg-a", opened(22, "203.0.113.0/24"), PAIR)), {"kept"}),
        (inventory(*CLOSED["SecurityGroups"], group("sg-new", opened(22, "0.0.0.0/0"))), {"exposure"}),
        ({}, {"exposure", "flows", "kept"}),
    ],
)  # fmt: skip
def test_each_way_to_get_it_wrong_is_caught_by_the_check_for_it(settled, missed):
    assert {"exposure", "flows", "kept"} - passed(settled) == missed


def test_a_write_breaks_untouched_and_a_refused_one_does_not():
    def write(code):
        return Write(t=1, user="oncall", verb="revoke", resource="ec2", namespace="", name="sg-a", code=code)

    assert "untouched" in passed(CLOSED, writes=[write(403)]) and "untouched" not in passed(CLOSED, writes=[write(200)])


def test_the_symptom_gate_knows_an_open_account_from_a_closed_one():
    assert account_symptom(ROW, OPEN) == "" and "no group is open" in account_symptom(ROW, CLOSED)
    assert account_symptom(TWIN, CLOSED) == "" and "open to the world" in account_symptom(TWIN, OPEN)


def test_the_plan_that_the_agent_gets_names_every_connection_that_is_checked():
    with (LIBRARY.scenario("ciso-40").folder / "services.csv").open() as file:
        plan = list(csv.DictReader(file))
    (spec,) = [entry.spec for entry in ROW.checks if entry.kind == "flows"]
    assert [entry.spec for entry in TWIN.checks if entry.kind == "flows"] == [spec]
    for flow in spec["flows"]:
        fitting = [
            line
            for line in plan
            if flow["to"] in line["to"].split()
            and flow.get("protocol", "tcp") in line["protocol"]
            and int(line["port"].split("-")[0]) <= flow["port"] <= int(line["port"].split("-")[-1])
        ]
        assert fitting, flow


def fixture(expected, right=True, name="f"):
    return {"id": name, "expected": expected, "right": right, "state": "x", "detail": ""}


def run(name, expected, right=True):
    return {**fixture(expected, right, name), "violations": [], "missing": []}


def matrix(**changes):
    sorts = ("not_satisfied", "satisfied", "not_assessed")
    runs = [
        ("main", "satisfied"),
        ("second", "not_satisfied"),
        ("partial", "not_assessed"),
        ("unreachable", "not_assessed"),
    ]
    return {
        "fixtures": [fixture(sort) for sort in sorts for _ in range(2)],
        "runs": [run(*each) for each in runs],
        "given": {"script.sh": "1", "policy.rego": "2", "contract.md": "3"},
        "delivered": {"script.sh": "1", "policy.rego": "2"},
    } | changes


POD = {"kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "spec": {"hostPID": True, "containers": []}}
STATED = {"state": "not_satisfied", "violations": [{"kind": "Pod", "namespace": "n", "name": "p"}]}


def policy_results(facts, answer=STATED):
    checks = [{kind: {}} for kind in ("detect", "permit", "fail-closed", "collect", "posture", "unchanged")]
    base = LIBRARY.scenario("ciso-3").scenario
    scenario = type(base).model_validate({**base.model_dump(by_alias=True), "checks": checks})
    evidence = Evidence(scenario="x", seed=0, trial=1, times={}, snapshots={"baseline": Snapshot(t=0, objects={"pods": [POD]})},
                        submission={"verdict": "incomplete", "answer": answer}, facts={"matrix": facts})  # fmt: skip
    return grade(scenario, evidence)["checks"]


def missed(facts, **more):
    return {check.name for check in policy_results(facts, **more) if not check.passed}


def test_a_right_matrix_passes_and_an_absent_one_fails_everywhere():
    assert missed(matrix()) == set()
    assert missed({}) == {"detect", "permit", "fail-closed", "collect", "unchanged"}


@pytest.mark.parametrize(
    ("facts", "names"),
    [
        (matrix(fixtures=[fixture("not_satisfied", False), fixture("satisfied"), fixture("not_assessed")]), {"detect"}),
        (matrix(fixtures=[fixture("not_satisfied"), fixture("satisfied", False), fixture("not_assessed")]), {"permit"}),
        (matrix(fixtures=[fixture("not_satisfied"), fixture("satisfied"), fixture("not_assessed", False)]), {"fail-closed"}),
        (matrix(runs=[run("main", "satisfied"), run("second", "not_satisfied", False)]), {"collect:second"}),
        (matrix(runs=[run("main", "satisfied"), run("partial", "not_assessed", False)]), {"fail-closed"}),
        (matrix(delivered={"script.sh": "1", "policy.rego": "9"}), {"unchanged"}),
        (matrix(delivered={"script.sh": "", "policy.rego": "2"}), {"unchanged"}),
    ],
)  # fmt: skip
def test_each_wrong_row_is_caught_by_its_own_check(facts, names):
    assert missed(facts) == names


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"state": "satisfied", "violations": []},
        {"state": "not_satisfied", "violations": []},
        {"state": "not_satisfied", "violations": "all"},
        {"state": "not_satisfied", "violations": [*STATED["violations"], {"kind": "Pod", "namespace": "n", "name": "q"}]},
    ],
)  # fmt: skip
def test_a_posture_is_right_only_with_state_and_exactly_the_violations(answer):
    assert missed(matrix(), answer=answer) == {"posture"}


def test_sensitivity_and_specificity_are_metrics_of_the_trial():
    half = matrix(
        fixtures=[
            fixture("not_satisfied"),
            fixture("not_satisfied", False),
            fixture("satisfied"),
            fixture("not_assessed"),
        ]
    )
    assert policy_metrics(policy_results(half)) == {"sensitivity": 0.5, "specificity": 1.0}
