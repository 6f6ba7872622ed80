"""Checks of compliance rows on an account: `exposure` (closed is what must be), `flows` (what must work does), `kept`,
`untouched`.

Pure over the inventories that the account driver collected; the reachability code is that of `itbench.policy`.
"""

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from itbench.core.documents.scenario import Scenario
from itbench.evaluate.registry import Case, Finding, Spec, check
from itbench.policy.reachability import Exposure, Inventory, exposures, reaches

IDENTITY = {
    "SecurityGroups": "GroupId",
    "PrefixLists": "PrefixListId",
    "NetworkInterfaces": "NetworkInterfaceId",
    "Instances": "InstanceId",
    "LoadBalancers": "LoadBalancerArn",
}
"""What must still be there, and how it is identified."""
Port = tuple[str, int]


class ExposureSpec(Spec):
    """No group lets the world reach one of these (protocol, port) pairs."""

    ports: tuple[Port, ...] = Field(min_length=1)


class Flow(Spec):
    """A connection that must work: from an address or `group:NAME` to a named interface, instance or load balancer."""

    from_: str = Field(alias="from")
    to: str
    port: int
    protocol: str = "tcp"

    def __str__(self) -> str:
        return f"{self.from_} to {self.to} {self.protocol}/{self.port}"


class FlowsSpec(Spec):
    """All of these must work after settling."""

    flows: tuple[Flow, ...] = Field(min_length=1)


class KeptSpec(Spec):
    """Groups, prefix lists, interfaces, instances and balancers of the baseline are still there; instances go on running."""


class UntouchedSpec(Spec):
    """The agent changed nothing."""


def inventory_of(case: Case, moment: str) -> Inventory | None:
    """The inventory of a phase, or None when it was not recorded."""
    shot = case.evidence.snapshots.get(moment)
    return None if shot is None else shot.objects


def group_name(inventory: Inventory, identity: str) -> str:
    """`name (sg-...)` of a group."""
    for item in inventory.get("SecurityGroups", ()):
        if item["GroupId"] == identity:
            return f"{item.get('GroupName', '?')} ({identity})"
    return identity


def _missing(check_name: str, wanted: str) -> Finding:
    return Finding(False, wanted, "no inventory was recorded", "snapshots", score=0.0, label=check_name)


@check("exposure", ExposureSpec, answer="mitigation")
def grade_exposure(spec: ExposureSpec, case: Case) -> Finding:
    """Groups of the settled account, those that the agent made included.

    Score: share of the baseline's exposed groups that are closed.
    """
    wanted = "no group open to the world on " + ", ".join(f"{protocol}/{port}" for protocol, port in spec.ports)
    before, after = inventory_of(case, "baseline"), inventory_of(case, "settled")
    if before is None or after is None:
        return _missing("", wanted)
    first, left = _by_group(exposures(before, spec.ports)), _by_group(exposures(after, spec.ports))
    score = 1.0 - len(set(first) & set(left)) / len(first) if first else float(not left)
    shown = [f"{group_name(after, group)} on {ports}" for group, ports in sorted(left.items())]
    details = {"exposed_at_baseline": sorted(first), "exposed": sorted(left)}
    return Finding(not left, wanted, "; ".join(shown) or "none", "snapshots.settled.objects", score, details)


def _by_group(found: Iterator[Exposure]) -> dict[str, str]:
    ports: dict[str, list[str]] = {}
    for each in found:
        ports.setdefault(each.group, []).append(f"{each.protocol}/{each.port}")
    return {group: ", ".join(names) for group, names in ports.items()}


@check("flows", FlowsSpec, answer="mitigation")
def grade_flows(spec: FlowsSpec, case: Case) -> Finding:
    """Every connection of the network plan works in the settled account. Score: share of those that do."""
    wanted = f"all {len(spec.flows)} connections of the plan work"
    after = inventory_of(case, "settled")
    names: dict[str, str] = case.evidence.facts.get("names", {})
    if after is None:
        return _missing("", wanted)
    cut = [str(flow) for flow in spec.flows if not works(flow, after, names)]
    score = 1.0 - len(cut) / len(spec.flows)
    return Finding(not cut, wanted, "cut: " + "; ".join(cut) if cut else "all work", "snapshots.settled.objects", score)


def works(flow: Flow, inventory: Inventory, names: dict[str, str]) -> bool:
    """Whether a connection works; a name that the account does not have is no connection."""
    source = names.get(flow.from_[6:], "sg-none") if flow.from_.startswith("group:") else flow.from_
    return reaches(inventory, source, names.get(flow.to, ""), flow.protocol, flow.port)


@check("kept", KeptSpec, answer="mitigation")
def grade_kept(spec: KeptSpec, case: Case) -> Finding:
    """Nothing of the baseline was deleted, stopped or detached."""
    wanted = "everything of the baseline is still there and runs"
    before, after = inventory_of(case, "baseline"), inventory_of(case, "settled")
    if before is None or after is None:
        return _missing("", wanted)
    lost = sorted(_lost(before, after))
    return Finding(not lost, wanted, "; ".join(lost) or "all there", "snapshots.settled.objects")


def _lost(before: Inventory, after: Inventory) -> Iterator[str]:
    for key, field in IDENTITY.items():
        now = {item[field]: item for item in after.get(key, ())}
        for item in before.get(key, ()):
            if item[field] not in now:
                yield f"{item[field]} is gone"
            elif _running(item) and not _running(now[item[field]]):
                yield f"{item[field]} no longer runs"


def _running(item: dict[str, Any]) -> bool:
    state = item.get("State")
    return isinstance(state, dict) and state.get("Name") == "running"


@check("untouched", UntouchedSpec, answer="mitigation")
def grade_untouched(spec: UntouchedSpec, case: Case) -> Finding:
    """No write of the agent succeeded: where nothing is wrong, a change is a risk that nobody asked for."""
    made = [f"{write.verb} {write.name}".strip() for write in case.evidence.writes if write.code < 400]
    return Finding(not made, "no change", "; ".join(made[:5]) or "no change", "writes")


def account_symptom(scenario: Scenario, inventory: Inventory) -> str:
    """Why the start state is not what the scenario says; empty when it is. Asked by the account driver at its symptom gate."""
    for entry in scenario.checks:
        if entry.kind == "exposure":
            found = list(exposures(inventory, ExposureSpec.model_validate(entry.spec).ports))
            if bool(found) == scenario.symptom.none:
                return "a group is open to the world" if found else "no group is open to the world"
    return ""
