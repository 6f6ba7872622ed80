"""The autoscaler follows its metrics within its rules, and says what it lacks."""

from typing import Any

from fake_kubelet import FakeKubelets, Obj, cluster, deployment
from hypothesis import given
from hypothesis import strategies as st

from itbench.kube.controllers.hpa_replicas import replicas_for


def scaled(k: FakeKubelets, usage_m: Any, replicas: int = 2, **spec: Any) -> None:
    """A Deployment asking for 100m with an autoscaler at 50 %, and metrics of `usage_m()` millicores per pod."""
    body = deployment("web", replicas)
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    k.client.create("deployments.apps", body)
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
    }
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    hpa = {"scaleTargetRef": ref, "minReplicas": 1, "maxReplicas": 10, "metrics": [metric], **spec}
    meta = {"name": "web", "namespace": "default"}
    k.client.create(
        "horizontalpodautoscalers.autoscaling",
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": hpa},
    )

    def metrics(namespace: str) -> list[Obj]:
        return [
            {
                "metadata": p["metadata"],
                "containers": [{"name": "c", "usage": {"cpu": f"{usage_m()}m", "memory": "1Mi"}}],
            }
            for p in k.client.list("pods", namespace)
        ]

    k.plane.metrics = metrics if usage_m is not None else None


def state(k: FakeKubelets) -> dict[str, tuple[str, str]]:
    status = k.client.get("horizontalpodautoscalers.autoscaling", "web", "default")["status"]
    return {c["type"]: (c["status"], c["reason"]) for c in status.get("conditions", [])}


def size(k: FakeKubelets) -> int:
    return int(k.client.get("deployments.apps", "web", "default")["spec"]["replicas"])


def test_high_usage_scales_up_and_the_event_says_why() -> None:
    k = cluster()
    scaled(k, lambda: 100)
    k.advance(16.0)
    assert size(k) == 4
    assert state(k)["AbleToScale"] == ("True", "SucceededRescale")
    (event,) = [e for e in k.client.list("events", "default") if e["reason"] == "SuccessfulRescale"]
    assert event["message"] == "New size: 4; reason: cpu resource utilization (percentage of request) above target"


def test_low_usage_scales_down_only_after_the_stabilisation_window() -> None:
    k = cluster()
    usage = [50]
    scaled(k, lambda: usage[0], replicas=4)
    k.advance(31.0)
    usage[0] = 5
    k.advance(120.0)
    assert size(k) == 4 and state(k)["AbleToScale"] == ("True", "ScaleDownStabilized")
    k.advance(400.0)
    assert size(k) < 4


def test_usage_within_the_tolerance_changes_nothing() -> None:
    k = cluster()
    scaled(k, lambda: 54)
    k.advance(60.0)
    assert size(k) == 2 and state(k)["ScalingActive"] == ("True", "ValidMetricFound")


def test_a_missing_metrics_api_is_reported_in_the_real_words() -> None:
    k = cluster()
    scaled(k, None)
    k.advance(16.0)
    assert state(k)["ScalingActive"] == ("False", "FailedGetResourceMetric")
    texts = {e["reason"]: e["message"] for e in k.client.list("events", "default")}
    tail = (
        "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource "
        "metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"
    )
    assert texts["FailedGetResourceMetric"] == tail
    first = "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: "
    assert texts["FailedComputeMetricsReplicas"] == first + tail


def test_more_than_the_maximum_is_brought_back() -> None:
    k = cluster()
    scaled(k, lambda: 50, replicas=12)
    k.advance(16.0)
    assert size(k) == 10


@given(st.integers(1, 50), st.floats(0.01, 10.0))
def test_replicas_follow_the_ratio(current: int, ratio: float) -> None:
    wanted = replicas_for(current, ratio, ([{}] * current, [], []), ratio)
    assert wanted == current if abs(1 - ratio) <= 0.1 else (wanted >= current) == (ratio > 1) or wanted == current
