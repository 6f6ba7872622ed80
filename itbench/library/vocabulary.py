"""The domains' typed checks and steps, passed into the library so that it can validate entries of documents.

`itbench.evaluate` registers checks, `itbench.agents.steps` registers steps; the command line puts both together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from itbench.core.documents.base import DocumentError, Path_, document_error, nearest
from itbench.core.documents.scenario import Entry, Scenario


@dataclass(frozen=True)
class Vocabulary:
    """Models, or annotated types, by kind. A model with a field named `value` also takes a bare value (`state: '...'`)."""

    checks: Mapping[str, Any] = field(default_factory=dict)
    steps: Mapping[str, Any] = field(default_factory=dict)

    def check(self, entry: Entry) -> Any:
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
    models: Mapping[str, Any],
    what: str,
    file: Path | str,
    lines: Mapping[Path_, int],
    path: Path_,
) -> Any:
    model = models.get(entry.kind)
    if model is None:
        raise DocumentError(
            f"{file}:{lines.get(path, 1)}: {'.'.join(map(str, path))}: unknown {what}",
            seen=entry.kind,
            expected="one of " + ", ".join(sorted(models)),
            hint=nearest(entry.kind, list(models)),
        )
    try:
        return TypeAdapter(model).validate_python(spec_mapping(entry.spec, model))
    except ValidationError as error:
        head = (*path, entry.kind)
        inner = {key[len(head) :]: line for key, line in lines.items() if key[: len(head)] == head}
        raise document_error(error, file, inner, model) from error


def spec_mapping(spec: Any, model: Any) -> Any:
    """A bare value as the mapping `{value: ...}` where the model has that field; mappings as they are."""
    if not isinstance(spec, dict) and "value" in getattr(model, "model_fields", {}):
        return {"value": spec}
    return spec
