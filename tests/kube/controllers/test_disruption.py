"""Disruption budgets count what may be evicted, and evictions spend it."""

from typing import Any

import pytest
from fake_kubelet import FakeKubelets, cluster, deployment

from itbench.kube.client import ApiError


def budget(k: FakeKubelets, name: str, app: str, **spec: Any) -> None:
    meta = {"name": name, "namespace": "default"}
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta}
    k.client.create(
        "poddisruptionbudgets.policy", {**body, "spec": {"selector": {"matchLabels": {"app": app}}, **spec}}
    )


def numbers(k: FakeKubelets, name: str) -> tuple[int, int, int, int]:
    s = k.client.get("poddisruptionbudgets.policy", name, "default")["status"]
    return s["disruptionsAllowed"], s["currentHealthy"], s["desiredHealthy"], s["expectedPods"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 2}, (2, 4, 2, 4)),
        ({"minAvailable": "60%"}, (1, 4, 3, 4)),
        ({"maxUnavailable": 1}, (1, 4, 3, 4)),
        ({"maxUnavailable": 0}, (0, 4, 4, 4)),
    ],
)
def test_a_budget_allows_what_exceeds_the_desired_number(spec: dict[str, Any], expected: tuple[int, ...]) -> None:
    k = cluster()
    budget(k, "web", "web", **spec)
    k.client.create("deployments.apps", deployment("web", 4))
    k.settle()
    assert numbers(k, "web") == expected
    (condition,) = k.client.get("poddisruptionbudgets.policy", "web", "default")["status"]["conditions"]
    wanted = ("True", "SufficientPods") if expected[0] else ("False", "InsufficientPods")
    assert (condition["status"], condition["reason"]) == wanted


def test_a_second_eviction_is_refused_until_the_first_pod_is_replaced() -> None:
    k = cluster()
    budget(k, "web", "web", maxUnavailable=1)
    k.client.create("deployments.apps", deployment("web", 3))
    k.settle()
    first, second, _ = (p["metadata"]["name"] for p in k.client.list("pods", "default"))
    k.client.evict(first, "default")
    with pytest.raises(ApiError) as caught:
        k.client.evict(second, "default")
    assert caught.value.code == 429
    k.settle()
    k.client.evict(second, "default")
    k.settle()
    assert numbers(k, "web") == (1, 3, 2, 3)
    assert "disruptedPods" not in k.client.get("poddisruptionbudgets.policy", "web", "default")["status"]


def test_a_budget_without_pods_says_so() -> None:
    k = cluster(nodes=1)
    budget(k, "none", "nothing", maxUnavailable=1)
    k.settle()
    assert numbers(k, "none") == (0, 0, 0, 0)
    assert [e["message"] for e in k.client.list("events", "default") if e["reason"] == "NoPods"] == [
        "No matching pods found"
    ]
