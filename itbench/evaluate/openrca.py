"""The answers of OpenRCA, scored by `credit` with the rules of that benchmark, for results that are comparable with its own.

An answer is a list of failures with up to three elements each: component, reason, time of occurrence. A query asks for some.
Each asked element of each failure is worth the same; names must be equal, times within a minute; another number of failures than
there were is worth nothing. Source: Xu et al. 2025, OpenRCA (ICLR), section 3.3. For researchers; tested on its archive.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from itbench.evaluate.credit import Credit, Scheme, partial_credit

COMPONENT, REASON, TIME = "component", "reason", "datetime"
ASKED: dict[str, tuple[str, ...]] = {
    "task_1": (TIME,),
    "task_2": (REASON,),
    "task_3": (COMPONENT,),
    "task_4": (TIME, REASON),
    "task_5": (TIME, COMPONENT),
    "task_6": (COMPONENT, REASON),
    "task_7": (TIME, COMPONENT, REASON),
}
"""Which elements a query of each kind asks for."""
WITHIN_S = 60.0
_KEYS = {
    COMPONENT: "root cause component",
    REASON: "root cause reason",
    TIME: "root cause occurrence datetime",
}

Failure = Mapping[str, str]
"""Element -> text; elements that were not given are absent."""


def matches(element: str, given: str | None, true: str) -> bool:
    """Whether an element is right: equal text, or a time within a minute."""
    if given is None:
        return False
    if element != TIME:
        return given == true
    try:
        moments = [datetime.strptime(text, "%Y-%m-%d %H:%M:%S") for text in (given, true)]
    except ValueError:
        return False
    return abs((moments[0] - moments[1]).total_seconds()) <= WITHIN_S


def scheme(asked: Collection[str]) -> Scheme[Failure, Failure]:
    """The rules for a query that asks for these elements."""

    def points(given: Failure, true: Failure) -> float:
        return float(sum(matches(element, given.get(element), true[element]) for element in asked))

    return Scheme(points, full=float(len(asked)), punish_extra=False, same_number=True)


@dataclass(frozen=True)
class Graded:
    """An answer with its credit, and the true elements that it met and missed."""

    credit: Credit
    met: tuple[str, ...]
    missed: tuple[str, ...]

    @property
    def score(self) -> float:
        """0 to 1."""
        return self.credit.score


def grade(predicted: Sequence[Failure], truths: Sequence[Failure], asked: Sequence[str]) -> Graded:
    """Grade an answer.

    Args:
        predicted: the failures that were named.
        truths: those that there were, each with every asked element.
        asked: elements that the query asks for.
    """
    credit = partial_credit(predicted, truths, scheme(asked))
    of = {truth: predicted[one] for one, truth in credit.pairs}
    met: list[str] = []
    missed: list[str] = []
    for number, truth in enumerate(truths):
        for element in asked:
            right = matches(element, of.get(number, {}).get(element), truth[element])
            (met if right else missed).append(truth[element])
    return Graded(credit, tuple(met), tuple(missed))


def read_prediction(text: str) -> list[Failure]:
    """The failures in an agent's text: a JSON object of numbered failures, whatever stands around it; unreadable is none."""
    found = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        data: Any = json.loads(found[0]) if found else {}
    except ValueError:
        return []
    listed = data.values() if isinstance(data, dict) else ()
    return [
        {name: str(each[key]) for name, key in _KEYS.items() if each.get(key) not in (None, "")}
        for each in listed
        if isinstance(each, dict)
    ]
