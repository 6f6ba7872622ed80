"""Defaults and 422 texts per kind, as a real 1.34 server gives them."""

from typing import Any

import pytest

from itbench.core.ids import Ids
from itbench.kube.client import ApiError, Obj
from itbench.kube.local import LocalClient
from itbench.kube.registry import Registry
from itbench.kube.store import Store

CONTAINER = {"name": "c", "image": "i:1"}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
SELECTOR = {"matchLabels": {"a": "b"}}


@pytest.fixture(scope="module")
def client() -> LocalClient:
    """A client; every case uses names of its own or fails to create."""
    client = LocalClient(Registry(store=Store(), ids=Ids(3), now=lambda: 0.0), "me")
    client.create("namespaces", {"metadata": {"name": "t"}})
    client.create("serviceaccounts", {"metadata": {"name": "default"}}, "t")
    return client


def _causes(client: LocalClient, resource: str, body: Obj) -> list[str]:
    with pytest.raises(ApiError) as caught:
        client.create(resource, {"metadata": {"name": "x"}, **body}, "t")
    assert caught.value.code == 422, caught.value
    return [f"{row['field']}: {row['message']}" for row in caught.value.status["details"]["causes"]]


def _pod(**spec: Any) -> Obj:
    return {"spec": {"containers": [CONTAINER], **spec}}


PODS = {
    "no containers": (_pod(containers=[]), ["spec.containers: Required value"]),
    "no name": (_pod(containers=[{"image": "i"}]), ["spec.containers[0].name: Required value"]),
    "twice": (_pod(containers=[CONTAINER, CONTAINER]), ['spec.containers[1].name: Duplicate value: "c"']),
    "dots": (
        _pod(containers=[{**CONTAINER, "name": "a.b"}]),
        ['spec.containers[0].name: Invalid value: "a.b": must not contain dots'],
    ),
    "policies": (
        _pod(restartPolicy="Foo", dnsPolicy="Bar"),
        [
            'spec.restartPolicy: Unsupported value: "Foo": supported values: "Always", "OnFailure", "Never"',
            'spec.dnsPolicy: Unsupported value: "Bar": supported values: "ClusterFirstWithHostNet", "ClusterFirst", '
            '"Default", "None"',
        ],
    ),
    "request over limit": (
        _pod(containers=[{**CONTAINER, "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]),
        ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
    ),
    "missing volume": (
        _pod(containers=[{**CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/a"}]}]),
        ['spec.containers[0].volumeMounts[0].name: Not found: "v"'],
    ),
    "probe": (
        _pod(containers=[{**CONTAINER, "livenessProbe": {"exec": {"command": ["x"]}, "successThreshold": 3}}]),
        ["spec.containers[0].livenessProbe.successThreshold: Invalid value: 3: must be 1"],
    ),
}


@pytest.mark.parametrize("case", PODS)
def test_pods_are_refused_with_every_fault_named(client: LocalClient, case: str) -> None:
    """All causes, in the server's order and words."""
    body, expected = PODS[case]
    assert _causes(client, "pods", body) == expected


OTHERS = {
    "replicas": (
        "deployments.apps",
        {"spec": {"replicas": -1, "selector": SELECTOR, "template": TEMPLATE}},
        ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
    ),
    "selector": (
        "deployments.apps",
        {"spec": {"selector": {"matchLabels": {"z": "z"}}, "template": TEMPLATE}},
        ['spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`'],
    ),
    "no surge": (
        "deployments.apps",
        {
            "spec": {
                "selector": SELECTOR,
                "template": TEMPLATE,
                "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}},
            }
        },
        ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0'],
    ),
    "service ports": ("services", {"spec": {}}, ["spec.ports: Required value"]),
    "service address": (
        "services",
        {"spec": {"clusterIP": "1.2.3.4", "ports": [{"port": 80}]}},
        [
            'spec.clusterIPs: Invalid value: ["1.2.3.4"]: failed to allocate IP 1.2.3.4: the provided network does '
            "not match the current range"
        ],
    ),
    "config key": (
        "configmaps",
        {"data": {"..": "x"}},
        ["data[..]: Invalid value: \"..\": must not be '..'"],
    ),
    "job": (
        "jobs.batch",
        {"spec": {"template": TEMPLATE}},
        ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    ),
    "cron": (
        "cronjobs.batch",
        {
            "spec": {
                "schedule": "* * * *",
                "jobTemplate": {"spec": {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}},
            }
        },
        ['spec.schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]'],
    ),
    "budget": (
        "poddisruptionbudgets.policy",
        {"spec": {"maxUnavailable": "150%"}},
        ['spec.maxUnavailable: Invalid value: "150%": must not be greater than 100%'],
    ),
    "autoscaler": (
        "horizontalpodautoscalers.autoscaling",
        {
            "spec": {
                "maxReplicas": 1,
                "minReplicas": 2,
                "scaleTargetRef": {"kind": "D", "name": "d", "apiVersion": "apps/v1"},
            }
        },
        ["spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`"],
    ),
    "claim": (
        "persistentvolumeclaims",
        {"spec": {"resources": {"requests": {"storage": "1Gi"}}}},
        ["spec.accessModes: Required value: at least 1 access mode is required"],
    ),
    "ingress": (
        "ingresses.networking.k8s.io",
        {"spec": {"rules": [{"host": "1.2.3.4"}]}},
        ['spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address'],
    ),
    "policy": (
        "networkpolicies.networking.k8s.io",
        {"spec": {"podSelector": {}, "ingress": [{"from": [{}]}]}},
        ["spec.ingress[0].from[0]: Required value: must specify a peer"],
    ),
    "role": (
        "roles.rbac.authorization.k8s.io",
        {"rules": [{"apiGroups": [""], "resources": ["pods"]}]},
        ["rules[0].verbs: Required value: verbs must contain at least one value"],
    ),
    "binding": (
        "rolebindings.rbac.authorization.k8s.io",
        {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Foo", "name": "r"}},
        ['roleRef.kind: Unsupported value: "Foo": supported values: "Role", "ClusterRole"'],
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_kinds_are_refused_in_the_servers_words(client: LocalClient, case: str) -> None:
    """One typical mistake per kind."""
    resource, body, expected = OTHERS[case]
    assert _causes(client, resource, body) == expected


def test_bad_names_and_labels_are_named(client: LocalClient) -> None:
    """The subdomain text with its regular expression, label values with theirs."""
    body = {"metadata": {"name": "Bad_Name", "labels": {"a": "no spaces"}}}
    with pytest.raises(ApiError) as caught:
        client.create("configmaps", body, "t")
    name, label = caught.value.status["details"]["causes"]
    assert name["field"] == "metadata.name"
    assert (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
        in name["message"]
    )
    assert label["message"].startswith(
        'Invalid value: "no spaces": a valid label must be an empty string or consist of'
    )


def test_immutable_selector_comes_after_validation_of_the_new_object(client: LocalClient) -> None:
    """Both faults, validation first."""
    client.create(
        "deployments.apps", {"metadata": {"name": "fixed"}, "spec": {"selector": SELECTOR, "template": TEMPLATE}}, "t"
    )
    with pytest.raises(ApiError) as caught:
        client.patch("deployments.apps", "fixed", "t", {"spec": {"selector": {"matchLabels": {"x": "y"}}}})
    assert [row["field"] for row in caught.value.status["details"]["causes"]] == [
        "spec.template.metadata.labels",
        "spec.selector",
    ]
    assert caught.value.status["details"]["causes"][1]["message"] == (
        'Invalid value: {"matchLabels":{"a":"b","x":"y"}}: field is immutable'
    )


def test_pod_defaults(client: LocalClient) -> None:
    """What `get -o yaml` shows of a pod with one container, account volume and tolerations included."""
    probe = {"httpGet": {"port": 80}}
    body = _pod(
        containers=[{"name": "c", "image": "repo/i", "livenessProbe": probe, "resources": {"limits": {"cpu": "1000m"}}}]
    )
    pod = client.create("pods", {"metadata": {"name": "p"}, **body}, "t")
    spec, (container,) = pod["spec"], pod["spec"]["containers"]
    assert (container["imagePullPolicy"], container["resources"]) == (
        "Always",
        {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
    )
    assert container["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert (spec["restartPolicy"], spec["dnsPolicy"], spec["priority"], spec["serviceAccount"]) == (
        "Always",
        "ClusterFirst",
        0,
        "default",
    )
    assert [row["tolerationSeconds"] for row in spec["tolerations"]] == [300, 300]
    (mount,) = container["volumeMounts"]
    assert mount["name"].startswith("kube-api-access-")
    assert [row["name"] for row in spec["volumes"]] == [mount["name"]]
    assert pod["status"] == {"phase": "Pending", "qosClass": "Burstable"}


def test_service_defaults_and_node_ports(client: LocalClient) -> None:
    """Addresses from the range, ports from theirs, kept over updates, given back with the type."""
    made = client.create(
        "services", {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}, "t"
    )
    spec = made["spec"]
    assert spec["clusterIP"].startswith("10.96.")
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    (port,) = spec["ports"]
    assert (port["protocol"], port["targetPort"], 30000 <= port["nodePort"] < 32768) == ("TCP", 80, True)
    body = {
        "metadata": {"name": "s", "namespace": "t"},
        "spec": {"type": "NodePort", "ports": [{"port": 80, "targetPort": 8080}]},
    }
    kept = client.update("services", body)["spec"]
    assert (kept["clusterIP"], kept["ports"][0]["nodePort"]) == (spec["clusterIP"], port["nodePort"])
    plain = client.patch("services", "s", "t", {"spec": {"type": "ClusterIP"}})["spec"]
    assert "nodePort" not in plain["ports"][0]
    assert "externalTrafficPolicy" not in plain


def test_workload_defaults(client: LocalClient) -> None:
    """Strategies, limits and retention of the workload kinds."""
    body = {"selector": SELECTOR, "template": TEMPLATE}
    deployment = client.create("deployments.apps", {"metadata": {"name": "w"}, "spec": body}, "t")["spec"]
    assert deployment["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
    }
    assert (deployment["replicas"], deployment["revisionHistoryLimit"], deployment["progressDeadlineSeconds"]) == (
        1,
        10,
        600,
    )
    stateful = client.create("statefulsets.apps", {"metadata": {"name": "w"}, "spec": body}, "t")["spec"]
    assert stateful["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    job = {"spec": {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}}
    made = client.create("jobs.batch", {"metadata": {"name": "w"}, **job}, "t")
    assert made["spec"]["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": made["metadata"]["uid"]}
    assert made["spec"]["template"]["metadata"]["labels"]["job-name"] == "w"


def test_secrets_fold_plain_data(client: LocalClient) -> None:
    """stringData becomes data and is not kept; the type is Opaque."""
    secret = client.create("secrets", {"metadata": {"name": "s"}, "stringData": {"k": "v"}}, "t")
    assert (secret["data"], secret["type"], "stringData" in secret) == ({"k": "dg=="}, "Opaque", False)
    with pytest.raises(ApiError, match="illegal base64 data at input byte 3"):
        client.create("secrets", {"metadata": {"name": "q"}, "data": {"k": "not base64!"}}, "t")


def test_immutable_config_cannot_change(client: LocalClient) -> None:
    """Neither the data nor the flag."""
    client.create("configmaps", {"metadata": {"name": "i"}, "immutable": True, "data": {"a": "1"}}, "t")
    with pytest.raises(ApiError, match="data: Forbidden: field is immutable when `immutable` is set"):
        client.patch("configmaps", "i", "t", {"data": {"a": "2"}})


def test_pod_updates_change_images_only(client: LocalClient) -> None:
    """Anything else is refused with a difference."""
    client.create("pods", {"metadata": {"name": "u"}, **_pod()}, "t")
    image = {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}
    assert client.patch("pods", "u", "t", image, kind="strategic")["spec"]["containers"][0]["image"] == "i:2"
    env = {"spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]}]}}
    with pytest.raises(ApiError, match="pod updates may not change fields other than") as caught:
        client.patch("pods", "u", "t", env, kind="strategic")
    assert '+     "Name": "A"' in str(caught.value)
