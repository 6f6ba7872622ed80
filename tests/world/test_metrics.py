"""What Prometheus scrapes from the world, asked in PromQL, and alert rules that are objects of the cluster."""

import numpy as np
import pytest

from itbench.kube.client import Client
from itbench.telemetry.promql import query_instant
from itbench.world.estate import World


def ask(world: World, expression: str) -> list[float]:
    """Values of an instant query now."""
    return [float(series.v[-1]) for series in query_instant(world.metrics, expression, world.now).series]


def test_request_rates_are_the_flows_rates_within_counting_noise(world: World) -> None:
    world.advance(world.now + 600)
    calls = 'sum(rate(traces_span_metrics_calls_total{service_name="api",span_kind="SPAN_KIND_SERVER"}[5m]))'
    assert ask(world, calls) == [pytest.approx(20.0, rel=0.1)]
    assert ask(world, 'sum(rate(http_server_request_duration_seconds_count{service_name="web"}[5m]))') == [
        pytest.approx(20.0, rel=0.1)
    ]
    assert ask(world, 'sum(rate(rpc_server_duration_milliseconds_count{service_name="api"}[5m]))') == [
        pytest.approx(20.0, rel=0.1)
    ]


def test_latency_histograms_show_the_probes_quantile(world: World) -> None:
    world.advance(world.now + 600)
    p99 = "histogram_quantile(0.99, sum by (le) (rate(journey_duration_seconds_bucket[5m])))"
    measured = world.journeys(world.now - 60, world.now)["home"][-1].p99
    assert ask(world, p99) == [pytest.approx(measured, rel=0.25)]


def test_counters_never_fall(world: World, kubectl: Client) -> None:
    world.advance(world.now + 120)
    kubectl.patch("services", "api", "toy", {"spec": {"selector": {"version": "v2"}}})
    world.advance(world.now + 120)
    for block in world.metrics.blocks():
        for column, labels in enumerate(block.labels):
            name = dict(labels)["__name__"]
            if name.endswith(("_total", "_count", "_bucket", "_sum")):
                values = block.values[:, column]
                values = values[~np.isnan(values)]
                assert (np.diff(values) >= 0).all(), labels


def test_container_metrics_agree_with_usage(world: World) -> None:
    world.advance(world.now + 600)
    cpu = 'sum by (container) (rate(container_cpu_usage_seconds_total{container="api"}[5m]))'
    assert ask(world, cpu) == [pytest.approx(0.4, rel=0.05)]
    memory = ask(world, 'container_memory_working_set_bytes{container="api"}')
    assert all(value / 2**20 == pytest.approx(20, rel=0.1) for value in memory)
    assert ask(world, 'container_cpu_cfs_throttled_periods_total{container="api"}') == [0.0, 0.0]


def test_object_metrics_follow_the_objects(world: World, kubectl: Client) -> None:
    kubectl.patch("deployments.apps", "api", "toy", {"spec": {"replicas": 3}})
    world.advance(world.now + 60)
    assert ask(world, 'kube_deployment_status_replicas_available{deployment="api"}') == [3.0]
    assert ask(world, 'sum(kube_pod_status_phase{namespace="toy",phase="Running"})') == [6.0]
    assert ask(world, 'count(kube_pod_status_ready{namespace="toy",condition="true"} == 1)') == [6.0]
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "example.com/web:7"}]}}}}
    kubectl.patch("deployments.apps", "web", "toy", patch, kind="strategic")
    world.advance(world.now + 60)
    assert ask(world, 'kube_pod_container_status_waiting_reason{reason="ImagePullBackOff"}') == [1.0]


def test_object_metrics_have_the_names_of_kube_state_metrics(world: World, kubectl: Client) -> None:
    """What dashboards and the public alert rules ask for is there, with its labels and values."""
    scale = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}, "maxReplicas": 5}
    meta = {"name": "api", "namespace": "toy"}
    body = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": scale}
    kubectl.create("horizontalpodautoscalers.autoscaling", body, "toy")
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": {"pods": "9"}}}
    kubectl.create("resourcequotas", quota, "toy")
    world.advance(world.now + 60)
    assert ask(world, 'kube_horizontalpodautoscaler_spec_max_replicas{horizontalpodautoscaler="api"}') == [5.0]
    scaled = kubectl.get("horizontalpodautoscalers.autoscaling", "api", "toy")["status"]["currentReplicas"]
    assert ask(world, 'kube_horizontalpodautoscaler_status_current_replicas{namespace="toy"}') == [scaled]
    assert ask(world, 'kube_resourcequota{resourcequota="api",resource="pods",type="hard"}') == [9.0]
    used = 'kube_resourcequota{resourcequota="api",resource="pods",type="used"}'
    assert ask(world, used) == ask(world, 'count(kube_pod_info{namespace="toy"})')
    ages = ask(world, 'time() - kube_pod_created{namespace="toy"}')
    assert len(ages) == len(kubectl.list("pods", "toy"))
    assert all(0 < age <= world.now + 0.001 for age in ages), (ages, world.now)
    assert len(ask(world, "kube_pod_start_time - kube_pod_created >= 0")) == len(ask(world, "kube_pod_info"))
    ready = 'kube_node_status_condition{condition="Ready",status="true"}'
    assert ask(world, ready) == [1.0] * len(ask(world, "kube_node_info"))
    assert ask(world, 'kube_deployment_status_replicas_unavailable{deployment="api"}') == [0.0]
    for name in ("limits", "requests"):
        unit = f'kube_pod_container_resource_{name}{{container="api",resource="cpu",unit="core"}}'
        assert ask(world, unit), name
    assert ask(world, 'kube_node_status_capacity{resource="cpu"} - kube_node_status_allocatable >= 0')


def test_the_taint_of_a_cordoned_node_is_a_metric(world: World, kubectl: Client) -> None:
    """Cordoning neither stops the exporter nor goes unseen, although one of the labels is called value."""
    (node, *_) = [item["metadata"]["name"] for item in kubectl.list("nodes")]
    kubectl.patch("nodes", node, "", {"spec": {"taints": [{"key": "disk", "value": "full", "effect": "NoSchedule"}]}})
    world.advance(world.now + 40)
    assert ask(world, f'kube_node_spec_taint{{node="{node}",key="disk",value="full",effect="NoSchedule"}}') == [1.0]


def test_node_time_is_shared_by_modes_and_agrees_with_containers(world: World) -> None:
    """Modes add up to the time that passed on every core; what is not idle is the containers' work and the system's."""
    world.advance(world.now + 600)
    assert ask(world, "sum by (node, cpu) (rate(node_cpu_seconds_total[5m]))") == pytest.approx(
        [1.0] * len(ask(world, "count by (node, cpu) (node_cpu_seconds_total)")), rel=1e-6
    )
    busy = sum(ask(world, 'rate(node_cpu_seconds_total{mode!="idle"}[5m])'))
    work = sum(ask(world, "rate(container_cpu_usage_seconds_total[5m])"))
    assert busy == pytest.approx(work + 0.18 * len(ask(world, "node_load1")), rel=0.02)


def test_failures_show_as_errors_and_fire_the_alert_that_watches_them(world: World, kubectl: Client) -> None:
    expression = 'sum by (journey) (rate(journey_requests_total{result="error"}[1m])) > 1'
    rule = {"alert": "JourneyFails", "expr": expression, "for": "30s", "labels": {"severity": "critical"}}
    spec = {"groups": [{"name": "toy", "interval": "15s", "rules": [rule]}]}
    meta = {"name": "toy", "namespace": "toy"}
    body = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": meta, "spec": spec}
    kubectl.create("prometheusrules.monitoring.coreos.com", body, "toy")
    world.advance(world.now + 120)
    assert world.rules.alerts() == []
    kubectl.patch("services", "api", "toy", {"spec": {"selector": {"version": "v2"}}})
    world.advance(world.now + 120)
    assert [(a["labels"]["alertname"], a["state"]) for a in world.rules.alerts()] == [("JourneyFails", "firing")]
    errors = 'sum(rate(traces_span_metrics_calls_total{service_name="web",status_code="STATUS_CODE_ERROR"}[1m]))'
    assert ask(world, errors)[0] > 10


def test_noise_has_its_own_seed(world: World, settled: dict[str, object]) -> None:
    other = World.load({**settled, "noise_seed": 9})
    for each in (world, other):
        each.advance(each.now + 60)
    assert ask(world, "sum(journey_requests_total)") != ask(other, "sum(journey_requests_total)")
    assert world.journeys(0, 1e9) != {} and world.main.save() == other.main.save()
