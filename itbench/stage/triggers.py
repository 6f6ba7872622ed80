"""Disturbances that are over when an agent arrives, done again without Ansible: the challenge `replay: trigger`.

A trigger is an object of the Chaos Mesh kinds in one namespace that nobody on call can read. Doing it again is deleting that
object and creating it as it was. Called by the environments.
"""

from typing import Any

from itbench.kube.client import ApiError, Client, Obj

NAMESPACE = "node-ops"
RESOURCES = ("stresschaos.chaos-mesh.org", "podchaos.chaos-mesh.org")


def triggers(client: Client) -> list[tuple[str, Obj]]:
    """The disturbances that exist, as (resource, object), by resource and name."""
    return [(resource, obj) for resource in RESOURCES for obj in client.list(resource, NAMESPACE)]


def repeat(client: Client) -> int:
    """Do every disturbance again; returns how many there were."""
    found = triggers(client)
    for resource, obj in found:
        name = obj["metadata"]["name"]
        try:
            client.delete(resource, name, NAMESPACE)
        except ApiError as error:
            if error.code != 404:
                raise
        client.create(resource, _fresh(obj), NAMESPACE)
    return len(found)


def _fresh(obj: Obj) -> Obj:
    meta: dict[str, Any] = {"name": obj["metadata"]["name"], "namespace": NAMESPACE}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": meta, "spec": obj["spec"]}
