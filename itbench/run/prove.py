"""Does a scenario hold what it promises? Baseline silent, symptom there, nop fails, repairs pass, decoys fail by the check they
name, revert restores. Every line is a trial of its own from the same staged estate. Called by `itbench prove`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from itbench.core.documents.scenario import Scenario
from itbench.run.jobs import Job
from itbench.run.pool import Outcome


@dataclass(frozen=True)
class Claim:
    """One thing that must hold, and the job that shows it."""

    scenario: str
    what: str
    job: Job
    outcome: str = ""
    caught_by: str = ""


@dataclass(frozen=True)
class Shown:
    """What came out for a claim."""

    claim: Claim
    held: bool
    seen: str


CAUSES = ("checks", "no_submission")
"""Why a trial of a proof may have ended: a script whose step failed shows nothing about the steps after it."""


def claims(scenario: Scenario, seed: int, library: tuple[str, ...], *, fresh: bool = False) -> list[Claim]:
    """All claims of one scenario and seed. The first stages the estate (and so shows baseline and symptom)."""

    def job(agent: str, kind: Any = "trial") -> Job:
        return Job(scenario=scenario.id, agent=agent, seed=seed, kind=kind, library=library, clock="stepped:5")

    first = job("nop").model_copy(update={"fresh": fresh})
    found = [Claim(scenario.id, "baseline silent, symptom there, doing nothing fails", first, outcome="fail")]
    found.append(Claim(scenario.id, "destroying things fails", job("saboteur"), outcome="fail"))
    for number, repair in enumerate(scenario.repairs, start=1):
        found.append(Claim(scenario.id, f"repair {number}: {repair.name}", job(f"oracle:{number}"), outcome="pass"))
    for number, decoy in enumerate(scenario.decoys, start=1):
        what = f"decoy {number}: {decoy.name}"
        found.append(Claim(scenario.id, what, job(f"decoy:{number}"), outcome="fail", caught_by=decoy.caught_by))
    if scenario.faults:
        found.append(Claim(scenario.id, "revert restores the baseline", job("nop", "revert"), outcome="pass"))
    return found


def narrowed(found: list[Claim], texts: Sequence[str]) -> list[Claim]:
    """Only the claims that contain one of the texts (all of them when there is none); may be empty."""
    return [claim for claim in found if not texts or any(text.lower() in claim.what.lower() for text in texts)]


def judge(claim: Claim, outcome: Outcome) -> Shown:
    """Whether a claim held, and what was seen in one line."""
    result = outcome.result
    if result is None:
        return Shown(claim, False, outcome.error)
    wrong = [check for check in result["checks"] if not check["passed"]]
    failed = sorted({check["kind"] for check in wrong})
    caught = {*failed, *(check["name"] for check in wrong)}
    seen = result["outcome"] + (f" by {', '.join(failed)}" if failed else "")
    sound = result["outcome"] != "invalid" and result["cause"] in CAUSES
    if claim.job.kind == "revert" and result["detail"]:
        seen += f" ({result['detail']})"
    elif not sound:
        seen += f" ({result['cause']}: {result['detail']})"
    held = sound and result["outcome"] == claim.outcome and (not claim.caught_by or claim.caught_by in caught)
    return Shown(claim, held, seen)
