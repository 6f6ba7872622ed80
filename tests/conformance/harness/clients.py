"""Steps of the official Python client, named by the corpus (`client: NAME`): each gives plain data."""

from typing import Any

from kubernetes import client
from kubernetes.client import ApiException


def typed_configmap(api: client.ApiClient, namespace: str) -> Any:
    """Make, read, list, replace and delete a ConfigMap with typed objects."""
    core = client.CoreV1Api(api)
    made = core.create_namespaced_config_map(
        namespace,
        client.V1ConfigMap(metadata=client.V1ObjectMeta(name="typed", labels={"by": "client"}), data={"a": "1"}),
    )
    made.data["b"] = "2"
    core.replace_namespaced_config_map("typed", namespace, made)
    listed = core.list_namespaced_config_map(namespace, label_selector="by=client")
    gone = core.delete_namespaced_config_map("typed", namespace)
    return {
        "items": [item.data for item in listed.items],
        "gone": gone["status"] if isinstance(gone, dict) else gone.status,
        "kind": listed.kind,
    }


def conflict(api: client.ApiClient, namespace: str) -> Any:
    """Replacing with a stale resource version is refused."""
    core = client.CoreV1Api(api)
    made = core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="stale")))
    core.patch_namespaced_config_map("stale", namespace, {"data": {"x": "y"}})
    try:
        core.replace_namespaced_config_map("stale", namespace, made)
    except ApiException as error:
        return {"status": error.status, "reason": error.reason, "body": error.body}
    return "accepted"
