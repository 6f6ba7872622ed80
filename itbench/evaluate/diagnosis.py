"""The typed answers: `diagnosis` (entities and mechanisms, partial credit) and `verdict`; graded without a model.

The score is that of `localisation`; a diagnosis passes at the level that the check asks for, by default only when it is perfect.
"""

from collections.abc import Sequence
from typing import Literal

from itbench.core.documents.scenario import RootCause
from itbench.core.documents.task import Submission
from itbench.evaluate import localisation
from itbench.evaluate.localisation import Levels, levels
from itbench.evaluate.registry import Case, Finding, Spec, check
from itbench.evaluate.topology import Topology, topology

MOMENTS = ("baseline", "hand_over", "submit")
"""Snapshots whose objects make up the estate: what the agent may have seen."""


class DiagnosisSpec(Spec):
    """Every root cause named, with its mechanism, and nothing else.

    `level`: how deep it must be right. `detection`: whether anything is wrong; `localisation`: the entities; `mechanism`: and how
    they act. `chain`: the true paths of propagation are asked for too, edge by edge.
    """

    level: Literal["detection", "localisation", "mechanism"] = "mechanism"
    chain: bool = False


class VerdictSpec(Spec):
    """The typed verdict equals the true one."""


def score(predicted: Sequence[tuple[str, str]], truth: tuple[RootCause, ...]) -> float:
    """The score of a diagnosis where nothing is known of the estate: only names tell how near a miss is."""
    return localisation.score(predicted, truth, Topology())


def submission(case: Case) -> Submission | None:
    """The typed submission, or None when there is none."""
    data = case.evidence.submission
    return None if data is None else Submission.model_validate(data)


@check("diagnosis", DiagnosisSpec, answer="diagnosis")
def grade_diagnosis(spec: DiagnosisSpec, case: Case) -> Finding:
    """Root causes as typed in the submission against the truth."""
    truth = case.scenario.truth.root_causes
    wanted = "; ".join(f"{cause.entity} {cause.mechanism}" for cause in truth) or "no cause"
    given = submission(case)
    if given is None:
        return Finding(False, wanted, "no submission", "submission", score=0.0)
    predicted = [(cause.entity, cause.mechanism) for cause in given.diagnosis]
    chain = case.scenario.truth.chain
    found = levels(predicted, truth, _estate(case), given.chain, chain)
    seen = "; ".join(f"{entity} {mechanism}" for entity, mechanism in predicted) or "no cause"
    passed = _passed(spec, found)
    return Finding(passed, wanted, seen, "submission.diagnosis", score=found.score, details=_details(found))


def _estate(case: Case) -> Topology:
    snapshots = [case.evidence.snapshots[moment].objects for moment in MOMENTS if moment in case.evidence.snapshots]
    return topology(snapshots, case.scenario.truth.chain)


def _passed(spec: DiagnosisSpec, found: Levels) -> bool:
    right = {"detection": found.detected, "localisation": found.localised, "mechanism": found.identified}[spec.level]
    return right and (not spec.chain or found.chain in (None, 1.0))


def _details(found: Levels) -> dict[str, object]:
    """What partial credit says, for metrics and reports."""
    return {
        "version": localisation.VERSION,
        "detected": found.detected,
        "localised": found.localised,
        "localisation_score": found.localisation_score,
        "precision": found.precision,
        "chain_score": found.chain,
        "chance": found.chance,
    }


@check("verdict", VerdictSpec, answer="verdict")
def grade_verdict(spec: VerdictSpec, case: Case) -> Finding:
    """The verdict as typed in the submission against the truth."""
    given = submission(case)
    seen = "no submission" if given is None else (given.verdict or "none given")
    return Finding(seen == case.scenario.truth.verdict, case.scenario.truth.verdict, seen, "submission.verdict")
