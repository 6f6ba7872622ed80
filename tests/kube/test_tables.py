"""Tables: columns and cells of `kubectl get`, ages recomputed, the rest cached."""

import pytest

from itbench.kube.resources import builtin_table
from itbench.kube.store import Entry
from itbench.kube.tables import columns, render
from itbench.kube.tables.cells import human

TABLE = builtin_table()


def _entry(resource: str, **obj: object) -> Entry:
    metadata = {"name": "x", "namespace": "t", "creationTimestamp": "2026-01-12T08:00:00Z"}
    return Entry(resource, {"metadata": metadata, **obj}, 1)


def _cells(resource: str, now: float = 60.0, **obj: object) -> list:
    (row,) = render(TABLE.named(resource), [_entry(resource, **obj)], now)["rows"]
    return row["cells"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (243, "4m3s"),
        (600, "10m"),
        (10799, "179m"),
        (10800, "3h"),
        (12660, "3h31m"),
        (28800, "8h"),
        (172799, "47h"),
        (172800, "2d"),
        (180000, "2d2h"),
        (8 * 86400, "8d"),
        (2 * 365 * 86400, "2y"),
        (2 * 365 * 86400 + 86400, "2y1d"),
        (-5, "<invalid>"),
    ],
)
def test_ages_read_as_kubectl_writes_them(seconds: float, text: str) -> None:
    """Two units where they matter, one elsewhere."""
    assert human(seconds) == text


def test_every_listable_resource_renders_as_many_cells_as_columns() -> None:
    """No kind breaks on an almost empty object."""
    seen = 0
    for resource in TABLE:
        if "list" in resource.verbs and resource.group != "metrics.k8s.io":
            entry = _entry(resource.name, kind=resource.kind, apiVersion=resource.api_version)
            made = render(resource, [entry], 0.0)
            assert len(made["rows"][0]["cells"]) == len(made["columnDefinitions"]), resource.name
            seen += 1
    assert seen > 60


def _container(**state: object) -> dict:
    return {"name": "c", "ready": False, "restartCount": 0, **state}


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({"phase": "Pending"}, "Pending"),
        (
            {"phase": "Running", "containerStatuses": [_container(state={"waiting": {"reason": "CrashLoopBackOff"}})]},
            "CrashLoopBackOff",
        ),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"phase": "Running", "containerStatuses": [_container(state={"terminated": {"exitCode": 3}})]}, "ExitCode:3"),
        ({"phase": "Pending", "initContainerStatuses": [_container(state={"running": {}})]}, "Init:0/1"),
        (
            {
                "phase": "Pending",
                "initContainerStatuses": [_container(state={"terminated": {"exitCode": 1, "reason": "Error"}})],
            },
            "Init:Error",
        ),
    ],
)
def test_pod_status_words(status: dict, word: str) -> None:
    """The Status cell says what holds the pod up."""
    spec = {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]}
    assert _cells("pods", spec=spec, status=status)[2] == word


def test_ages_move_and_other_cells_are_kept() -> None:
    """The same entry is rendered once; only ages follow the clock."""
    ended = {"terminated": {"exitCode": 1, "finishedAt": "2026-01-12T08:00:30Z"}}
    statuses = [{"name": "c", "ready": True, "restartCount": 2, "state": {"running": {}}, "lastState": ended}]
    entry = _entry(
        "pods", spec={"containers": [{"name": "c"}]}, status={"phase": "Running", "containerStatuses": statuses}
    )
    pods = TABLE.named("pods")
    assert render(pods, [entry], 60.0)["rows"][0]["cells"][1:5] == ["1/1", "Running", "2 (30s ago)", "60s"]
    kept = entry.cells
    assert render(pods, [entry], 90.0)["rows"][0]["cells"][3:5] == ["2 (60s ago)", "90s"]
    assert entry.cells is kept


def test_rows_carry_metadata_the_object_or_nothing() -> None:
    """includeObject decides."""
    pods = TABLE.named("pods")
    entry = _entry("pods", apiVersion="v1", kind="Pod")
    objects = [render(pods, [entry], 0.0, include)["rows"][0]["object"] for include in ("Metadata", "Object", "None")]
    assert objects[0] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": entry.object["metadata"],
    }
    assert objects[1] is entry.object
    assert objects[2] is None


def test_services_and_autoscalers_show_what_is_pending_or_unknown() -> None:
    """`<pending>` without a load balancer, `<unknown>` without metrics."""
    spec = {"type": "LoadBalancer", "clusterIP": "10.96.0.5", "ports": [{"port": 80, "nodePort": 30001}]}
    assert _cells("services", spec=spec)[1:5] == ["LoadBalancer", "10.96.0.5", "<pending>", "80:30001/TCP"]
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
    }
    target = {"kind": "Deployment", "name": "w"}
    cells = _cells(
        "horizontalpodautoscalers.autoscaling", spec={"maxReplicas": 3, "scaleTargetRef": target, "metrics": [metric]}
    )
    assert cells[1:5] == ["Deployment/w", "cpu: <unknown>/60%", "<unset>", 3]


def test_columns_are_the_real_ones() -> None:
    """Names and priorities come from the served version; custom kinds have name and age."""
    wide = [row["name"] for row in columns(TABLE.named("deployments.apps")) if row["priority"]]
    assert wide == ["Containers", "Images", "Selector"]
    assert [row["name"] for row in columns(TABLE.named("podchaos.chaos-mesh.org"))] == ["Name", "Age"]


def test_an_event_at_the_very_first_second_has_an_age() -> None:
    """World second 0 is a time like any other."""
    cells = _cells("events", 60.0, lastTimestamp="2026-01-12T08:00:00Z", reason="RegisteredNode")
    assert cells[0] == "60s"
