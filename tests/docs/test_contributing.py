"""The control plane grows by one file and one line: the examples of CONTRIBUTING.md, and whether every file has its row."""

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

from itbench.core.ids import Ids
from itbench.kube import admission, controllers, kinds, plane
from itbench.kube.client import ApiError
from itbench.kube.controllers.base import Controller
from itbench.kube.kinds.base import Behaviour
from itbench.kube.plane import ControlPlane

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"


def example(name: str) -> dict[str, Any]:
    """The names that an example of the page defines."""
    text = re.search(rf"```python {name}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert text is not None
    found: dict[str, Any] = {}
    exec(compile(text[1], f"{PAGE.name}:{name}", "exec"), found)
    return found


def test_a_controller_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reacts to what is written, records events, and goes on in a plane that was saved and loaded."""
    mine, rows = example("controller")["CONTROLLER"], plane.controllers
    monkeypatch.setattr(plane, "controllers", lambda metrics: [*rows(metrics), mine])
    first = ControlPlane(ids=Ids(1))
    client = first.client("kubectl")
    wish = {"metadata": {"name": "a", "annotations": {"example.io/copy-to": "kube-public"}}, "data": {"k": "v"}}
    client.create("configmaps", wish, "default")
    first.run(1.0)
    assert client.get("configmaps", "a", "kube-public")["data"] == {"k": "v"}
    (event,) = [row for row in client.list("events", "default") if row["reason"] == "Copied"]
    assert (event["source"]["component"], event["message"]) == ("configmap-copier", "Copied to kube-public")
    second = ControlPlane.load(first.save())
    again = second.client("kubectl")
    again.create("configmaps", {**wish, "metadata": {**wish["metadata"], "name": "b"}}, "default")
    second.run(2.0)
    assert again.get("configmaps", "b", "kube-public")["data"] == {"k": "v"}
    assert first.defects == second.defects == []


def test_the_rules_of_a_kind_are_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing field and a changed one are refused in the words of the server."""
    monkeypatch.setitem(kinds._TABLE, "volumeattributesclasses.storage.k8s.io", example("kind")["CLASS"])
    client = ControlPlane(ids=Ids(1)).client("kubectl")
    with pytest.raises(ApiError, match="driverName: Required value"):
        client.create("volumeattributesclasses.storage.k8s.io", {"metadata": {"name": "x"}})
    client.create("volumeattributesclasses.storage.k8s.io", {"metadata": {"name": "x"}, "driverName": "d"})
    with pytest.raises(ApiError, match="field is immutable"):
        client.patch("volumeattributesclasses.storage.k8s.io", "x", "", {"driverName": "e"})


def test_an_admission_plugin_is_one_row() -> None:
    """What it refuses is 403, the rest goes through."""
    grown = ControlPlane(ids=Ids(1))
    grown.registry.validating.insert(0, example("plugin")["pinned_images"])
    client = grown.client("kubectl")
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    with pytest.raises(ApiError, match="images must have a tag"):
        client.create("pods", pod, "default")
    pod["spec"]["containers"][0]["image"] = "nginx:1"
    assert client.create("pods", pod, "default")["metadata"]["name"] == "p"


def members(package: Any, kind: type) -> dict[str, list[Any]]:
    """Module -> what it defines of a class, in all modules of a package."""
    found: dict[str, list[Any]] = {}
    for row in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(row.name)
        found[row.name] = [value for value in vars(module).values() if isinstance(value, kind)]
    return {name: values for name, values in found.items() if values}


def test_every_controller_has_a_file_of_its_own_and_a_row() -> None:
    """No controller is defined and forgotten, and few files hold more than one."""
    found = members(controllers, Controller)
    rows = plane.controllers(lambda namespace: None)
    names = {row.name for row in rows}
    assert {one.name for values in found.values() for one in values} - names == set()
    assert len(names) == len(rows)
    assert max(len(values) for values in found.values()) <= 3


def test_every_rule_of_a_kind_has_a_row() -> None:
    """What `kinds` defines is used by a kind."""
    used = {id(value) for value in kinds._TABLE.values()}
    found = members(kinds, Behaviour)
    assert [(name, one) for name, values in found.items() for one in values if id(one) not in used] == []


def test_every_plugin_is_in_a_phase() -> None:
    """Functions of a write that the package offers run in one of its phases."""
    rows = (*admission.MUTATING, *admission.ALLOCATING, *admission.VALIDATING)
    plain = [value for value in vars(admission).values() if callable(value) and hasattr(value, "__code__")]
    plugins = [value for value in plain if value.__code__.co_varnames[:1] == ("write",)]
    assert len(plugins) > 10
    assert [value.__name__ for value in plugins if value not in rows] == []
