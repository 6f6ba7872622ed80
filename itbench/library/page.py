"""The placeholders of a page, `{at.symptom}` and the like: their form, and which ones a scenario can have.

Called by the lint, so that a misspelt one is found before anything is stood up, and by `itbench.run.page`, which fills them in.
"""

import re

from itbench.core.documents.scenario import Scenario

PLACEHOLDER = re.compile(r"\{([a-z]+(?:\.[A-Za-z0-9_-]+)+)\}")

_CLUSTERS = ("at.now",)
_APP = ("at.now", "at.fault", "at.symptom")
_TARGET = ("target.kind", "target.name", "target.namespace")


def known(scenario: Scenario) -> list[str]:
    """Names that the page of a scenario may use; `target.*` stands for any name that an account's estate gives."""
    environment = scenario.environment
    if environment.aws is not None:
        return ["at.now", "answer.*", "target.*"]
    if environment.app is None:
        return [*_CLUSTERS, "answer.violations"]
    noise = [f"at.noise.{number}" for number in range(1, len(scenario.noise) + 1)]
    return [*_APP, *noise, *(_TARGET if scenario.faults else ())]


def unknown(scenario: Scenario) -> str | None:
    """The first placeholder of the page that nothing will ever fill in."""
    names = known(scenario)
    for name in PLACEHOLDER.findall(scenario.page):
        if name not in names and f"{name.partition('.')[0]}.*" not in names:
            return str(name)
    return None
