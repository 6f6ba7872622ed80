"""Renders what the agent is told: `{at.symptom}` and `{target.name}` in a page become text. Called at hand-over."""

import re
from collections.abc import Mapping

from itbench.core.documents.base import nearest
from itbench.core.errors import ScenarioDefect

_FIELD = re.compile(r"\{([a-z]+(?:\.[A-Za-z0-9_-]+)+)\}")


def render(template: str, values: Mapping[str, str]) -> str:
    """Replace every `{name.field}`.

    Raises:
        ScenarioDefect: a name that nothing defines.
    """

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in values:
            known = ", ".join(sorted(values))
            raise ScenarioDefect(
                "page uses an unknown value", seen=name, expected=f"one of {known}", hint=nearest(name, list(values))
            )
        return values[name]

    return _FIELD.sub(value, template)
