"""What the horizontal autoscaler says of metrics that give no number, in the words of the real one; pure. Called by `hpa`."""

from dataclasses import dataclass

from itbench.kube.client import Obj, Objs

NO_CUSTOM = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
NO_EXTERNAL = (
    "unable to fetch metrics from external metrics API: the server could not find the requested resource "
    "(get {}.external.metrics.k8s.io)"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A metric without a number.

    Attributes:
        reason: of the event and of the condition.
        message: of the event.
        summary: how it is named where all metrics of an autoscaler are.
    """

    reason: str
    message: str
    summary: str


def failure(spec: Obj, error: str, namespace: str) -> Failure:
    """The failure of one metric.

    Args:
        spec: the metric, as in `spec.metrics`.
        error: why a resource metric gives no number.
    """
    found: Failure = _KINDS[spec["type"]](spec, error, namespace)
    return found


def _resource(spec: Obj, error: str, namespace: str) -> Failure:
    source = spec["resource"]
    text = f"failed to get {source['name']} {_what(source)}: {error}"
    return Failure("FailedGetResourceMetric", text, f"failed to get {source['name']} resource metric value: {text}")


def _container(spec: Obj, error: str, namespace: str) -> Failure:
    source = spec["containerResource"]
    text = f"failed to get {source['name']} {_what(source)}: {error}"
    summary = f"failed to get {source['container']} container metric value: {text}"
    return Failure("FailedGetContainerResourceMetric", text, summary)


def _what(source: Obj) -> str:
    return "utilization" if source["target"].get("averageUtilization") is not None else "resource metric value"


def _pods(spec: Obj, error: str, namespace: str) -> Failure:
    text = f"unable to get metric {spec['pods']['metric']['name']}: {NO_CUSTOM}"
    return Failure("FailedGetPodsMetric", text, f"failed to get pods metric value: {text}")


def _object(spec: Obj, error: str, namespace: str) -> Failure:
    source = spec["object"]
    name, of = source["metric"]["name"], source["describedObject"]
    text = f"unable to get metric {name}: {of['kind']} on {namespace} {of['name']}/{NO_CUSTOM}"
    more = "" if source["target"].get("value") is not None else f"failed to get {name} object metric: "
    return Failure("FailedGetObjectMetric", text, f"failed to get object metric value: {more}{text}")


def _external(spec: Obj, error: str, namespace: str) -> Failure:
    source = spec["external"]
    name, whole = source["metric"]["name"], source["target"].get("value") is not None
    selector = go_selector(source["metric"].get("selector"))
    text = f"unable to get external metric {namespace}/{name}/{selector}: {NO_EXTERNAL.format(name)}"
    more = f"failed to get external metric {name}: " if whole else f"failed to get {name} external metric: "
    return Failure("FailedGetExternalMetric", text, f"failed to get {name} external metric value: {more}{text}")


_KINDS = {
    "Resource": _resource,
    "ContainerResource": _container,
    "Pods": _pods,
    "Object": _object,
    "External": _external,
}


def go_selector(selector: Obj | None) -> str:
    """A label selector as Go prints the structure."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    rows: Objs = selector.get("matchExpressions") or []
    head = "LabelSelectorRequirement"
    shown = "".join(
        f"{head}{{Key:{row['key']},Operator:{row['operator']},Values:[{' '.join(row.get('values') or ())}],}},"
        for row in rows
    )
    return f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]{head}{{{shown}}},}}"
