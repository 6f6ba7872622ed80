"""What a playbook is told, and what it is never told."""

import json
from pathlib import Path

import pytest

from itbench.core.documents.scenario import Scenario, Use
from itbench.library.store import Library
from itbench.stage.environment import Staging
from itbench.stage.variables import change_variables, staging_variables

LIBRARY = Library()
SRE = [name for name in LIBRARY.scenario_files if name.startswith("sre-")]


def _staging(scenario: Scenario) -> Staging:
    app = scenario.environment.app
    assert app is not None
    return Staging(private=Path("/x"), roots=LIBRARY.roots, app=app.id, faults=scenario.faults, noise=scenario.noise)


@pytest.mark.parametrize("identifier", SRE)
def test_extra_vars_carry_no_truth_repairs_or_decoys(identifier: str) -> None:
    """Ansible gets environment, app, faults, noise and library, and nothing that a grader knows."""
    scenario = LIBRARY.scenario(identifier).scenario
    variables = staging_variables(_staging(scenario), "embedded")
    assert set(variables) == {"environment_kind", "app", "faults", "noise", "library"}
    text = json.dumps(variables)
    sealed = [repair.name for repair in (*scenario.repairs, *scenario.decoys)] + [scenario.title, scenario.id]
    assert not [word for word in sealed if word in text]


def test_changes_outside_staging_happen_at_once() -> None:
    """A revert or a renewed injection does not wait as the scenario's first injection did."""
    use = Use(id="cpu-cut", target="deployment/shop/checkout", args={"fraction": 0.8}, after="60s")  # type: ignore[arg-type]
    staging = Staging(private=Path("/x"), roots=LIBRARY.roots, app="astronomy-shop", faults=(use,))
    (change,) = change_variables(staging, "embedded", "faults", "revert", [use])["changes"]
    assert change == {"id": "cpu-cut", "target": "deployment/shop/checkout", "args": {"fraction": 0.8}, "after": 0}
