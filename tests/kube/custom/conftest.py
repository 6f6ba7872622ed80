"""A control plane for the tests of custom resources, and what a real API server answered to the same requests."""

import json
from pathlib import Path
from typing import Any

import pytest

from itbench.core.ids import Ids
from itbench.kube.client import ApiError
from itbench.kube.plane import ControlPlane
from itbench.kube.requests import Options, PatchBody, Result

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class Estate:
    """Requests to one plane, answered like recorded ones."""

    def __init__(self) -> None:
        self.plane = ControlPlane(ids=Ids(7))
        self.registry = self.plane.registry
        self.client = self.plane.client("kubectl")
        self.second = 0.0

    def settle(self) -> None:
        """Let controllers do their work."""
        self.second += 1.0
        self.plane.run(self.second)

    def define(self, definition: dict) -> str:
        """Create a definition and wait for it; returns the name of the resource."""
        self.registry.create(self.registry.table.named(DEFINITIONS), definition, "", Options(validation="Ignore"))
        self.settle()
        return str(definition["metadata"]["name"])

    def answer(self, call: Any) -> dict:
        """What a client is told: code, message, causes, warnings."""
        try:
            result: Result = call()
        except ApiError as error:
            out: dict[str, Any] = {"code": error.code, "message": error.status["message"]}
            causes = (error.status.get("details") or {}).get("causes")
            if causes:
                out["causes"] = [[row.get("reason", ""), row.get("field", "")] for row in causes]
            return out
        found: dict[str, Any] = {"code": 201 if result.created else 200}
        if result.warnings:
            found["warnings"] = list(result.warnings)
        if "spec" in result.object and result.object["kind"] != "CustomResourceDefinition":
            found["spec"] = result.object["spec"]
        return found

    def create(self, resource: str, body: dict, *, validation: str = "Warn", dry: bool = True) -> dict:
        """POST to `default`."""
        row = self.registry.table.named(resource)
        options = Options("Python-urllib", dry_run=dry, validation=validation)
        return self.answer(lambda: self.registry.create(row, body, "default" if row.namespaced else "", options))

    def patch(self, resource: str, name: str, kind: str, body: Any) -> dict:
        """PATCH in `default`, dry."""
        row = self.registry.table.named(resource)
        options = Options("m", dry_run=True)
        return self.answer(lambda: self.registry.patch(row, name, "default", PatchBody(kind, body), options))


@pytest.fixture
def estate() -> Estate:
    """A fresh control plane."""
    return Estate()


@pytest.fixture(scope="session")
def recorded() -> Any:
    """Name of a record -> its content."""
    return lambda name: json.loads((Path(__file__).parent / f"{name}.json").read_text())


def _definition(schema: Any = None, **version: Any) -> dict:
    names = {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]}
    whole = {"type": "object", "properties": {"spec": schema or {"type": "object", "properties": {}}}}
    first = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}, **version}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.io"},
        "spec": {"group": "ex.io", "scope": "Namespaced", "names": names, "versions": [first]},
    }


@pytest.fixture(scope="session")
def definition() -> Any:
    """Maker of definitions of Widget, from the schema of its spec and more of its first version."""
    return _definition
