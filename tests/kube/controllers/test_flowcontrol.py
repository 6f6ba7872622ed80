"""Flow schemas say whether their priority level exists."""

from itbench.core.ids import Ids
from itbench.kube.plane import ControlPlane

SCHEMAS = "flowschemas.flowcontrol.apiserver.k8s.io"
LEVELS = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"


def _dangling(plane: ControlPlane) -> set[str]:
    found = plane.client("test").list(SCHEMAS)
    return {schema["metadata"]["name"] for schema in found if schema["status"]["conditions"][0]["status"] == "True"}


def test_a_schema_dangles_exactly_while_its_level_is_gone() -> None:
    plane = ControlPlane(ids=Ids(1))
    client = plane.client("test")
    assert _dangling(plane) == set()
    level = client.get(LEVELS, "workload-low")
    client.delete(LEVELS, "workload-low")
    plane.run(1.0)
    assert _dangling(plane) == {"service-accounts"}
    text = client.get(SCHEMAS, "service-accounts")["status"]["conditions"][0]["message"]
    assert text.endswith('object named "workload-low" but there is no such object')
    client.create(LEVELS, {"metadata": {"name": "workload-low"}, "spec": level["spec"]})
    plane.run(2.0)
    assert _dangling(plane) == set()
