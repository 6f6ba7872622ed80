"""What is done to an estate after the agent left."""

from typing import Any

import pytest

from itbench.core.errors import ScenarioDefect
from itbench.evaluate.slo import ChallengeSpec
from itbench.kube.client import ApiError
from itbench.run.challenges import challenge


class Estate:
    """Records what is asked of it, in order; pods of `shop/web`, of which `serving` are ready, and one of a DaemonSet."""

    def __init__(self, *, refuse: int = 0, serving: tuple[str, ...] = ("web-1", "web-2")) -> None:
        self.done: list[str] = []
        self.serving = serving
        self.refuse = refuse

    def client(self, identity: str) -> "Estate":
        assert identity == "grader"
        return self

    async def replay(self) -> None:
        self.done.append("replay")

    async def advance(self, seconds: float) -> None:
        self.done.append(f"wait {seconds:g}")

    def get(self, resource: str, name: str, namespace: str) -> dict[str, Any]:
        if name != "web":
            raise ApiError({"code": 404, "reason": "NotFound"})
        return {"spec": {"selector": {"matchLabels": {"app": "web"}}}}

    def list(self, resource: str, namespace: str = "", *, labels: str = "", fields: str = "") -> list[dict[str, Any]]:
        names = ("web-1", "web-2") if labels == "app=web" else ("agent-1", "web-1")
        assert labels == "app=web" or fields == "spec.nodeName=node-1"
        return [
            {
                "metadata": {
                    "name": name,
                    "namespace": "shop",
                    "ownerReferences": [{"kind": "DaemonSet" if name == "agent-1" else "ReplicaSet"}],
                },
                "spec": {"nodeName": "node-1"},
                "status": {"conditions": [{"type": "Ready", "status": "True" if name in self.serving else "False"}]},
            }
            for name in names
        ]

    def delete(self, resource: str, name: str, namespace: str) -> None:
        self.done.append(f"delete {resource} {namespace}/{name}")

    def patch(self, resource: str, name: str, namespace: str, body: dict[str, Any]) -> None:
        self.done.append(f"patch {name} {body['spec']}")

    def evict(self, name: str, namespace: str) -> None:
        if self.refuse:
            raise ApiError({"code": self.refuse})
        self.done.append(f"evict {name}")


async def carry_out(estate: Estate, **spec: Any) -> list[str]:
    await challenge(ChallengeSpec.model_validate(spec), estate)  # type: ignore[arg-type]
    return estate.done


async def test_a_trigger_is_repeated_with_gaps_and_then_time_passes() -> None:
    done = await carry_out(Estate(), replay="trigger", times=2, gap=30, wait=100)
    assert done == ["replay", "wait 30", "replay", "wait 100"]


async def test_one_pod_of_a_workload_is_deleted() -> None:
    assert await carry_out(Estate(), delete_pod="deployment/shop/web", wait=1) == ["delete pods shop/web-1", "wait 1"]


async def test_a_pod_that_serves_is_meant_not_one_that_never_came_up() -> None:
    """Else the challenge of a fault that was brought back would miss what still serves."""
    done = await carry_out(Estate(serving=("web-2",)), delete_pod="deployment/shop/web", wait=1)
    assert done == ["delete pods shop/web-2", "wait 1"]


async def test_a_workload_that_is_gone_has_no_pod_to_delete() -> None:
    assert await carry_out(Estate(), delete_pod="deployment/shop/none", wait=1) == ["wait 1"]


async def test_a_node_is_drained_but_for_its_daemons_and_comes_back() -> None:
    done = await carry_out(Estate(), roll_node="deployment/shop/web", wait=1)
    assert done == [
        "patch node-1 {'unschedulable': True}",
        "evict web-1",
        "wait 60",
        "patch node-1 {'unschedulable': False}",
        "wait 1",
    ]


async def test_an_eviction_that_a_budget_refuses_does_not_end_the_challenge_and_other_errors_do() -> None:
    assert "wait 60" in await carry_out(Estate(refuse=429), roll_node="deployment/shop/web")
    with pytest.raises(ApiError):
        await carry_out(Estate(refuse=500), roll_node="deployment/shop/web")


@pytest.mark.parametrize("target", ["web", "pod/shop/web", "deployment/shop"])
async def test_what_names_no_workload_is_a_defect_of_the_scenario(target: str) -> None:
    with pytest.raises(ScenarioDefect, match="deployment/NAMESPACE/NAME"):
        await carry_out(Estate(), delete_pod=target)
