"""Every namespace has a ServiceAccount `default` and the cluster's certificate authority in `kube-root-ca.crt`."""

from itbench.kube.client import ApiError, Change
from itbench.kube.controllers.base import Context, Controller, KeysOf, is_deleting
from itbench.kube.controllers.cache import Cache, Key

CA_NOTE = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal "
    "service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)
CA_BUNDLE = """-----BEGIN CERTIFICATE-----
aXRiZW5jaCBlbWJlZGRlZCBjb250cm9sIHBsYW5lOiB0aGUgY2VydGlmaWNhdGUgYXV0aG9yaXR5IG9mIHRoZSBzZXJ2ZXIgaXMgbm90IHBhcnQgb2YgdGhlIHdvcmxk
-----END CERTIFICATE-----
"""
"""World objects carry no certificate of the machine: the bytes must be the same everywhere."""


def _namespace_of(*names: str) -> KeysOf:
    def keys(change: Change, cache: Cache) -> list[Key]:
        meta = change.object["metadata"]
        return [("", meta["namespace"])] if meta["name"] in names and change.type != "ADDED" else []

    return keys


def _self(change: Change, cache: Cache) -> list[Key]:
    return [("", change.object["metadata"]["name"])] if change.type != "DELETED" else []


def _wanted(context: Context, name: str) -> bool:
    namespace = context.cache.get("namespaces", "", name)
    return namespace is not None and not is_deleting(namespace)


def _create(context: Context, resource: str, obj: dict[str, object], namespace: str) -> None:
    try:
        context.client.create(resource, obj, namespace)
    except ApiError as error:
        if error.reason not in ("AlreadyExists", "Forbidden"):
            raise


def reconcile_account(context: Context, _: str, name: str) -> None:
    """The ServiceAccount `default` of a namespace."""
    if _wanted(context, name) and context.cache.get("serviceaccounts", name, "default") is None:
        meta = {"name": "default", "namespace": name}
        _create(context, "serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}, name)


def reconcile_ca(context: Context, _: str, name: str) -> None:
    """The ConfigMap `kube-root-ca.crt` of a namespace."""
    if not _wanted(context, name):
        return
    old = context.cache.get("configmaps", name, "kube-root-ca.crt")
    data = {"ca.crt": CA_BUNDLE}
    if old is None:
        meta = {"name": "kube-root-ca.crt", "namespace": name, "annotations": {"kubernetes.io/description": CA_NOTE}}
        _create(context, "configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}, name)
    elif old.get("data") != data:
        context.client.update("configmaps", {**old, "data": data})


ACCOUNTS = Controller(
    "serviceaccount-controller",
    {"namespaces": _self, "serviceaccounts": _namespace_of("default")},
    reconcile_account,
)
ROOT_CA = Controller(
    "root-ca-certificate-publisher-controller",
    {"namespaces": _self, "configmaps": _namespace_of("kube-root-ca.crt")},
    reconcile_ca,
)
