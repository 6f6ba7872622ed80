"""The registry against a real API server: the same requests, the same answers (skipped where ITBENCH_REAL is unset)."""

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from itbench.core.ids import Ids
from itbench.kube.client import ApiError
from itbench.kube.controllers.bootstrap import RESOURCES
from itbench.kube.plane import ControlPlane
from itbench.kube.registry import Registry
from itbench.kube.requests import DeleteOptions, Options, PatchBody
from itbench.kube.resources import Resource
from itbench.kube.store import Store

pytestmark = [pytest.mark.real, pytest.mark.slow]

TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
VOLATILE = {
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "time",
    "deletionTimestamp",
    "clusterIP",
    "clusterIPs",
    "nodePort",
}
CONTAINER = {"name": "c", "image": "i:1"}
LABELS = {"metadata": {"labels": {"a": "b"}}}
TEMPLATE = {**LABELS, "spec": {"containers": [{**CONTAINER, "ports": [{"containerPort": 80}]}]}}
SPEC = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": SPEC}


def _template(**spec: Any) -> dict:
    return {"spec": {"template": {"spec": spec}}}


def _applied(manager: str, spec: dict, **options: Any) -> tuple:
    body = {**DEPLOYMENT, "metadata": {"name": "s"}, "spec": spec}
    return ("patch", "deployments.apps", "s", body, "apply", {"manager": manager, **options})


MATCH = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}


def _policy(expression: str, **more: Any) -> dict:
    rules = {"resourceRules": [MATCH]}
    return {"spec": {"matchConstraints": rules, "validations": [{"expression": expression, **more}]}}


LAST = "kubectl.kubernetes.io/last-applied-configuration"


def _map(data: dict[str, str], kind: str, manager: str, notes: dict[str, str] | None = None, **options: Any) -> tuple:
    meta = {"name": "c", **({"annotations": notes} if notes is not None else {})}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
    return ("patch", "configmaps", "c", body, kind, {"manager": manager, **options})


CREATES: list[tuple[str, dict]] = [
    ("deployments.apps", {"spec": SPEC}),
    ("deployments.apps", {"spec": {**SPEC, "replicas": -1, "selector": {"matchLabels": {"z": "z"}}}}),
    ("deployments.apps", {"spec": {**SPEC, "replicas": "3"}}),
    ("deployments.apps", {"spec": {**SPEC, "strategy": {"type": "Foo"}}}),
    ("replicasets.apps", {"spec": SPEC}),
    ("statefulsets.apps", {"spec": {key: SPEC[key] for key in ("selector", "template")}}),
    ("daemonsets.apps", {"spec": {key: SPEC[key] for key in ("selector", "template")}}),
    ("jobs.batch", {"spec": {"template": TEMPLATE}}),
    ("cronjobs.batch", {"spec": {"schedule": "61 * * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}}}),
    ("services", {"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}),
    ("services", {"spec": {"ports": [{"port": 0}, {"port": 80, "protocol": "X"}], "type": "Foo"}}),
    ("services", {"spec": {"clusterIP": "None"}}),
    ("services", {"spec": {"type": "ExternalName"}}),
    ("configmaps", {"data": {"a b": "c", "..": "x"}}),
    ("configmaps", {"data": {"a": 1}}),
    ("secrets", {"stringData": {"a": "b"}}),
    ("secrets", {"data": {"a": "not base64!"}}),
    ("ingresses.networking.k8s.io", {"spec": {"rules": [{"host": "1.2.3.4", "http": {"paths": [{"path": "/"}]}}]}}),
    ("networkpolicies.networking.k8s.io", {"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 80}]}]}}),
    ("poddisruptionbudgets.policy", {"spec": {"minAvailable": 1, "maxUnavailable": 1}}),
    ("horizontalpodautoscalers.autoscaling", {"spec": {"maxReplicas": 0}}),
    ("persistentvolumeclaims", {"spec": {}}),
    ("persistentvolumes", {"spec": {}}),
    ("storageclasses.storage.k8s.io", {"reclaimPolicy": "Foo"}),
    ("roles.rbac.authorization.k8s.io", {"rules": [{}]}),
    ("rolebindings.rbac.authorization.k8s.io", {"roleRef": {"kind": "Foo", "name": ""}}),
    ("limitranges", {"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}),
    ("resourcequotas", {"spec": {"hard": {"pods": "1.5", "foo": "1"}}}),
    ("priorityclasses.scheduling.k8s.io", {"value": 2000000000}),
    ("namespaces", {"metadata": {"name": "a.b"}}),
    ("validatingadmissionpolicies.admissionregistration.k8s.io", {"spec": {}}),
    ("validatingadmissionpolicies.admissionregistration.k8s.io", {"spec": {"validations": [{"expression": "a.b"}]}}),
    ("validatingadmissionpolicies.admissionregistration.k8s.io", _policy("1 + 1")),
    ("validatingadmissionpolicies.admissionregistration.k8s.io", _policy("object.x >")),
    ("validatingadmissionpolicies.admissionregistration.k8s.io", _policy("'a' + 1 == 'b'", messageExpression="1")),
    ("validatingadmissionpolicies.admissionregistration.k8s.io", _policy("true", reason="Foo", message="a\nb")),
    ("validatingadmissionpolicies.admissionregistration.k8s.io", _policy("object.spec.replicas <= 5")),
    ("validatingadmissionpolicybindings.admissionregistration.k8s.io", {"spec": {"paramRef": {}}}),
    (
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        {"spec": {"policyName": "x", "validationActions": ["Deny", "Warn"], "matchResources": {}}},
    ),
    ("validatingwebhookconfigurations.admissionregistration.k8s.io", {"webhooks": [{}]}),
    (
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        {
            "webhooks": [
                {
                    "name": "a.b.c",
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    "clientConfig": {"service": {"name": "s", "namespace": "n"}},
                    "rules": [MATCH],
                }
            ]
        },
    ),
    ("certificatesigningrequests.certificates.k8s.io", {"spec": {"request": "aGVsbG8=", "signerName": "foo"}}),
    ("resourcequotas", {"spec": {"hard": {"cpu": "1"}, "scopes": ["BestEffort", "NotBestEffort", "Foo"]}}),
    ("namespaces", {"metadata": {"name": "n", "labels": {"pod-security.kubernetes.io/enforce": "foo"}}}),
    ("pods", {"spec": {"containers": [{"name": "A", "image": "", "livenessProbe": {}}], "restartPolicy": "X"}}),
]
STEPS: list[tuple] = [
    ("create", "deployments.apps", "d", DEPLOYMENT),
    ("patch", "deployments.apps", "d", {"spec": {"replicas": 4}}, "merge", {}, "scale"),
    ("patch", "deployments.apps", "d", _template(containers=[{"name": "side", "image": "x"}]), "strategic"),
    ("patch", "deployments.apps", "d", _template(containers=[{"name": "side", "$patch": "delete"}]), "strategic"),
    ("patch", "deployments.apps", "d", _template(containers=[{"image": "x"}]), "strategic"),
    (
        "patch",
        "deployments.apps",
        "d",
        {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
        "strategic",
    ),
    ("patch", "deployments.apps", "d", {"spec": {"replicas": "abc"}}, "strategic"),
    ("patch", "deployments.apps", "d", {"spec": {"selector": {"matchLabels": {"x": "y"}}}}, "merge"),
    ("patch", "deployments.apps", "d", [{"op": "remove", "path": "/spec/nope"}], "json"),
    ("patch", "deployments.apps", "d", [{"op": "replace", "path": "/spec/replicas", "value": 5}], "json"),
    ("patch", "deployments.apps", "d", {"metadata": {"finalizers": ["x.y/z"]}}, "merge"),
    ("delete", "deployments.apps", "d", None),
    ("patch", "deployments.apps", "d", {"metadata": {"finalizers": None}}, "merge"),
    ("patch", "deployments.apps", "d", {}, "merge"),
    _applied("m1", SPEC),
    _applied("m2", {**SPEC, "replicas": 3}),
    _applied("m2", {**SPEC, "replicas": 3}, force=True),
    _applied("m1", {key: SPEC[key] for key in ("selector", "template")}),
    ("patch", "deployments.apps", "s", {"spec": {"replicas": 8}}, "merge", {"manager": "scaler"}, "scale"),
    _applied("m2", {**SPEC, "replicas": 3}),
    _applied("m3", {"foo": 1}),
    ("create", "configmaps", "c", {"metadata": {"name": "c"}, "data": {"a": "<1>"}}),
    _map({"a": "<1>"}, "merge", "kubectl-client-side-apply", {LAST: '{"metadata":{"annotations":{}}}'}),
    _map({"a": "<1>"}, "apply", "kubectl"),
    _map({"a": "<1>"}, "apply", "joins"),
    _map({"a": "<1>"}, "apply", "kubectl", {"x": "y"}),
    _map({"a": "<1>"}, "apply", "joins"),
    _map({"a": "2"}, "apply", "kubectl"),
    _map({"a": "2"}, "apply", "kubectl", force=True),
    _map({}, "apply", "kubectl"),
]


class Real:
    """Requests to the real server."""

    def __init__(self, folder: Path) -> None:
        config = yaml.safe_load((folder / "kubeconfig").read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = cluster["server"]
        self.tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self.tls.load_cert_chain(user["client-certificate"], user["client-key"])

    def ask(self, method: str, path: str, body: Any, kind: str = "") -> dict:
        """The JSON answer, error or not."""
        headers = {"Content-Type": TYPES.get(kind, "application/json"), "User-Agent": "me/1"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, method=method, data=data, headers=headers)
        try:
            with urllib.request.urlopen(request, context=self.tls) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return json.load(error)


@pytest.fixture(scope="module")
def real(bare_plane: Path) -> Real:
    """Requests to a server of this module's own."""
    return Real(bare_plane)


@pytest.fixture(scope="module")
def ours() -> Registry:
    """The embedded registry with the same namespace."""
    registry = Registry(store=Store(), ids=Ids(1), now=lambda: 0.0)
    registry.create(registry.table.named("namespaces"), {"metadata": {"name": "t"}}, "", Options())
    account = {"metadata": {"name": "default"}, "automountServiceAccountToken": False}
    registry.create(registry.table.named("serviceaccounts"), account, "t", Options())
    return registry


@pytest.fixture(scope="module", autouse=True)
def _namespace(real: Real) -> None:
    real.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "t"}})


def _path(resource: Resource, name: str = "", sub: str = "") -> str:
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    parts = [root, *(("namespaces", "t") if resource.namespaced else ()), resource.plural, name, sub]
    return "/".join(part for part in parts if part)


def _unordered(status: dict) -> dict:
    """Causes in a fixed order: the real server walks maps, so two faults of one map come in either order."""
    details = status["details"]
    head, _, tail = status["message"].partition(" is invalid: ")
    parts = [head, *sorted(tail.removeprefix("[").removesuffix("]").split(", "))]
    causes = sorted(details["causes"], key=json.dumps)
    return {**status, "message": parts, "details": {**details, "causes": causes}}


def _normal(value: Any) -> Any:
    """Without what differs by nature: uids, times, versions, allocated numbers; managedFields by owner."""
    if isinstance(value, dict):
        if value.get("kind") == "Status" and len(value.get("details", {}).get("causes") or []) > 1:
            value = _unordered(value)
        out = {key: "*" if key in VOLATILE and row is not None else _normal(row) for key, row in value.items()}
        if isinstance(out.get("managedFields"), list):
            rows = out["managedFields"]
            out["managedFields"] = {
                f"{row['manager']}/{row['operation']}/{row.get('subresource', '')}": row for row in rows
            }
        return out
    return [_normal(row) for row in value] if isinstance(value, list) else value


def _answer(ours: Registry, step: tuple, *, dry: bool = False) -> dict:
    action, name, target, body, kind, options, sub = (*step, *("", {}, "")[len(step) - 4 :])
    resource = ours.table.named(name)
    place = "t" if resource.namespaced else ""
    how = Options(**{"manager": "me", "dry_run": dry, **options})
    try:
        if action == "create":
            return ours.create(resource, body, place, how).object
        if action == "delete":
            return ours.delete(resource, target, place, DeleteOptions(), how).object
        return ours.patch(resource, target, place, PatchBody(kind, body), how, sub).object
    except ApiError as error:
        return error.status


@pytest.mark.parametrize("index", range(len(CREATES)), ids=[f"{index}-{row[0]}" for index, row in enumerate(CREATES)])
def test_creates_are_answered_alike(real: Real, ours: Registry, index: int) -> None:
    """Defaults, ownership and every refusal."""
    name, body = CREATES[index]
    body = {"metadata": {"name": "x"}, **body}
    there = real.ask("POST", _path(ours.table.named(name)) + "?dryRun=All", body)
    assert _normal(_answer(ours, ("create", name, "x", body), dry=True)) == _normal(there)


def test_a_history_of_patches_and_applies_is_answered_alike(real: Real, ours: Registry) -> None:
    """Each step builds on those before it, so states must agree as well as answers."""
    for step in STEPS:
        action, name, target, body, kind, options, sub = (*step, *("", {}, "")[len(step) - 4 :])
        resource = ours.table.named(name)
        query = [f"fieldManager={options.get('manager', 'me')}"] + (["force=true"] if options.get("force") else [])
        method = {"create": "POST", "patch": "PATCH", "delete": "DELETE"}[action]
        path = _path(resource, "" if action == "create" else target, sub)
        there = real.ask(method, path if action == "delete" else f"{path}?{'&'.join(query)}", body, kind)
        assert _normal(_answer(ours, step)) == _normal(there), step


def test_a_fresh_cluster_holds_what_a_real_one_holds(real: Real) -> None:
    """Roles, bindings, flow schemas, priority levels, service ranges (a bare server has no controllers' accounts)."""
    client = ControlPlane(ids=Ids(1)).client("test")
    for kind, name in RESOURCES.items():
        if kind == "ServiceAccount":
            continue
        path = _path(client.registry.table.named(name)).replace("/namespaces/t", "")
        there = {_place(item): item.get("spec") for item in real.ask("GET", path, None)["items"]}
        assert {_place(item): item.get("spec") for item in client.list(name)} == there, name


def _place(item: dict) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]
