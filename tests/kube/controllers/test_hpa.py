"""The autoscaler follows its metrics within its rules, and says what it lacks."""

from typing import Any

import pytest
from fake_kubelet import FakeKubelets, Obj, cluster, deployment
from hypothesis import given
from hypothesis import strategies as st

from itbench.kube.controllers.hpa_failures import go_selector
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


NO_CUSTOM = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
NO_QUEUE = (
    "unable to fetch metrics from external metrics API: the server could not find the requested resource "
    "(get queue.external.metrics.k8s.io)"
)
RPS, QUEUE = {"name": "rps"}, {"name": "queue"}
WHOLE, EACH = {"type": "Value", "value": "10"}, {"type": "AverageValue", "averageValue": "10"}
ITEM = {"apiVersion": "v1", "kind": "Service", "name": "main"}
SELECTED = {**QUEUE, "selector": {"matchLabels": {"q": "a"}}}
GO_SELECTOR = "&LabelSelector{MatchLabels:map[string]string{q: a,},MatchExpressions:[]LabelSelectorRequirement{},}"


@pytest.mark.parametrize(
    ("metric", "message", "first"),
    [
        (
            {"type": "Pods", "pods": {"metric": RPS, "target": EACH}},
            f"unable to get metric rps: {NO_CUSTOM}",
            "failed to get pods metric value: ",
        ),
        (
            {"type": "Object", "object": {"metric": RPS, "describedObject": ITEM, "target": WHOLE}},
            f"unable to get metric rps: Service on default main/{NO_CUSTOM}",
            "failed to get object metric value: ",
        ),
        (
            {"type": "Object", "object": {"metric": RPS, "describedObject": ITEM, "target": EACH}},
            f"unable to get metric rps: Service on default main/{NO_CUSTOM}",
            "failed to get object metric value: failed to get rps object metric: ",
        ),
        (
            {"type": "External", "external": {"metric": SELECTED, "target": WHOLE}},
            f"unable to get external metric default/queue/{GO_SELECTOR}: {NO_QUEUE}",
            "failed to get queue external metric value: failed to get external metric queue: ",
        ),
        (
            {"type": "External", "external": {"metric": QUEUE, "target": EACH}},
            f"unable to get external metric default/queue/nil: {NO_QUEUE}",
            "failed to get queue external metric value: failed to get queue external metric: ",
        ),
    ],
)
def test_metrics_of_apis_that_are_not_there_are_told_in_the_real_words(metric: Obj, message: str, first: str) -> None:
    """Recorded from a real control plane without custom and external metrics: events, condition, empty current metric."""
    k = cluster()
    scaled(k, lambda: 50, metrics=[metric])
    k.advance(16.0)
    reason = f"FailedGet{metric['type']}Metric"
    assert state(k)["ScalingActive"] == ("False", reason)
    events = {e["reason"]: e["message"] for e in k.client.list("events", "default") if e["type"] == "Warning"}
    assert events == {
        reason: message,
        "FailedComputeMetricsReplicas": f"invalid metrics (1 invalid out of 1), first error is: {first}{message}",
    }
    hpa = k.client.get("horizontalpodautoscalers.autoscaling", "web", "default")
    assert hpa["status"]["currentMetrics"] == [{"type": ""}]
    assert size(k) == 2


def test_expressions_of_a_selector_are_printed_as_go_does() -> None:
    """Keys sorted, values in brackets."""
    selector = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["a", "b"]}]}
    row = "LabelSelectorRequirement{Key:k,Operator:In,Values:[a b],},"
    assert go_selector(selector) == (
        f"&LabelSelector{{MatchLabels:map[string]string{{}},MatchExpressions:[]LabelSelectorRequirement{{{row}}},}}"
    )


def test_two_autoscalers_of_the_same_pods_do_nothing() -> None:
    """Neither scales, and each says which ones contend."""
    k = cluster()
    scaled(k, lambda: 100)
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    other = {"metadata": {"name": "other"}, "spec": {"scaleTargetRef": ref, "maxReplicas": 3}}
    k.client.create("horizontalpodautoscalers.autoscaling", other, "default")
    k.advance(16.0)
    assert size(k) == 2
    assert state(k)["ScalingActive"] == ("False", "AmbiguousSelector")
    text = "pods by selector app=web are controlled by multiple HPAs: [default/other default/web]"
    said = {(e["reason"], e["message"]) for e in k.client.list("events", "default") if e["type"] == "Warning"}
    assert said == {("AmbiguousSelector", text), ("FailedComputeMetricsReplicas", text)}
