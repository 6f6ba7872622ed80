"""Renders what the agent is told: `{at.symptom}` and `{target.name}` in a page become text. Called at hand-over."""

import json
import re
from collections.abc import Mapping
from typing import Any

from itbench.core.documents.base import nearest
from itbench.core.errors import ScenarioDefect
from itbench.library.page import PLACEHOLDER


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

    return PLACEHOLDER.sub(value, template)


def render_data(value: Any, values: Mapping[str, str]) -> Any:
    """The known `{name.field}` in all texts of plain data, as scripted agents need them.

    A text that is nothing but one `{answer.NAME}` becomes the JSON that the driver gives for it; texts may have braces of
    their own, so unknown names stay as they are.
    """
    if isinstance(value, str):
        whole = PLACEHOLDER.fullmatch(value)
        if whole is not None and whole[1].startswith("answer.") and whole[1] in values:
            return json.loads(values[whole[1]])
        return PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), value)
    if isinstance(value, Mapping):
        return {key: render_data(item, values) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [render_data(item, values) for item in value]
    return value
