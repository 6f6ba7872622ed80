"""The extra vars of a playbook: environment, app, faults, noise, and where the library lies. Nothing a grader knows is in them.

Called by the environments; tested to carry no truth, repairs or decoys.
"""

from collections.abc import Iterable
from typing import Any

from itbench.core.documents.scenario import Use
from itbench.stage.environment import Staging


def change(use: Use) -> dict[str, Any]:
    """One fault or piece of noise as the playbooks take it."""
    return {"id": use.id, "target": use.target, "args": dict(use.args), "after": use.after}


def staging_variables(staging: Staging, environment: str) -> dict[str, Any]:
    """Extra vars of `scenario.yml`."""
    return {
        **_common(staging, environment),
        "faults": [change(use) for use in staging.faults],
        "noise": [change(use) for use in staging.noise],
    }


def change_variables(staging: Staging, environment: str, part: str, verb: str, uses: Iterable[Use]) -> dict[str, Any]:
    """Extra vars of `change.yml`; changes happen at once, whatever their `after`."""
    changes = [{**change(use), "after": 0} for use in uses]
    return {**_common(staging, environment), "part": part, "verb": verb, "changes": changes}


def _common(staging: Staging, environment: str) -> dict[str, Any]:
    library = [str(root / "playbooks") for root in staging.roots if (root / "playbooks").is_dir()]
    return {"environment_kind": environment, "app": staging.app, "library": library}
