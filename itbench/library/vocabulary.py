"""The domains' typed checks and steps, passed into the library so that it can validate entries of documents.

`itbench.evaluate` registers checks, `itbench.agents.steps` registers steps; the command line puts both together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from itbench.core.documents.base import DocumentError, Path_, nearest, parse
from itbench.core.documents.scenario import Entry, Scenario


@dataclass(frozen=True)
class Vocabulary:
    """Models by kind. A model with one required field named `value` also takes a bare value (`wait: 2m`)."""

    checks: Mapping[str, type[BaseModel]] = field(default_factory=dict)
    steps: Mapping[str, type[BaseModel]] = field(default_factory=dict)

    def check(self, entry: Entry) -> BaseModel:
        """The typed specification of a check that was validated when its scenario was loaded."""
        return _typed(entry, self.checks, "check", "scenario", {}, ())

    def validate(self, scenario: Scenario, file: Path, lines: Mapping[Path_, int]) -> None:
        """Raise DocumentError for the first check or step that no domain knows or whose fields are wrong."""
        for index, entry in enumerate(scenario.checks):
            _typed(entry, self.checks, "check", file, lines, ("checks", index))
        for group, plans in (("repairs", scenario.repairs), ("decoys", scenario.decoys)):
            for index, plan in enumerate(plans):
                for place, step in enumerate(plan.steps):
                    _typed(step, self.steps, "step", file, lines, (group, index, "steps", place))


def _typed(
    entry: Entry,
    models: Mapping[str, type[BaseModel]],
    what: str,
    file: Path | str,
    lines: Mapping[Path_, int],
    path: Path_,
) -> BaseModel:
    model = models.get(entry.kind)
    if model is None:
        line = lines.get(path, 1)
        raise DocumentError(
            f"{file}:{line}: {'.'.join(map(str, path))}: unknown {what}",
            seen=entry.kind,
            expected="one of " + ", ".join(sorted(models)),
            hint=nearest(entry.kind, list(models)),
        )
    inner = {key[len(path) + 1 :]: line for key, line in lines.items() if key[: len(path) + 1] == (*path, entry.kind)}
    return parse(model, spec_mapping(entry.spec, model), file=file, lines=inner)


def spec_mapping(spec: Any, model: type[BaseModel]) -> Any:
    """A bare value as the mapping `{value: ...}` where the model has that field; mappings as they are."""
    if not isinstance(spec, dict) and "value" in model.model_fields:
        return {"value": spec}
    return spec
