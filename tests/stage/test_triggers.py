"""Replaying a trigger without Ansible."""

from itbench.core.ids import Ids
from itbench.kube.plane import ControlPlane
from itbench.stage.triggers import NAMESPACE, repeat, triggers

STRESS = "stresschaos.chaos-mesh.org"


def _plane() -> ControlPlane:
    plane = ControlPlane(ids=Ids(1))
    client = plane.client("test")
    client.create("namespaces", {"metadata": {"name": NAMESPACE}})
    spec = {"mode": "all", "duration": "10s", "stressors": {"cpu": {"workers": 1, "load": 80}}}
    obj = {"apiVersion": "chaos-mesh.org/v1alpha1", "kind": "StressChaos", "spec": spec}
    client.create(STRESS, {**obj, "metadata": {"name": "checkout-cpu", "namespace": NAMESPACE}}, NAMESPACE)
    return plane


def test_a_trigger_is_done_again_as_a_new_object_with_the_same_specification() -> None:
    """The world sees a fresh disturbance, equal to the first one but for its identity."""
    client = _plane().client("test")
    ((_, before),) = triggers(client)
    assert repeat(client) == 1
    ((_, after),) = triggers(client)
    assert after["spec"] == before["spec"]
    assert after["metadata"]["name"] == before["metadata"]["name"]
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


def test_without_triggers_nothing_is_repeated() -> None:
    """A scenario whose faults leave no disturbance has nothing to replay, and says so by zero."""
    plane = ControlPlane(ids=Ids(1))
    plane.client("test").create("namespaces", {"metadata": {"name": NAMESPACE}})
    assert repeat(plane.client("test")) == 0
