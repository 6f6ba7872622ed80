"""The typed answers: `diagnosis` (entities and mechanisms, partial credit) and `verdict`; graded without a model.

Score of a diagnosis with predictions P and true causes T (each with accepted alternatives):

    score = 2 * sum of the credits of the best one-to-one matching / (|P| + |T|)

with credit 1 for entity and mechanism, 1/2 for the entity alone, 1/4 for an object of the same name and namespace but
another kind with the right mechanism, 0 otherwise.
So a perfect answer scores 1, an empty one 0, a false positive never helps. It passes at 1.
"""

from itertools import permutations

from itbench.core.documents.scenario import Cause, RootCause
from itbench.core.documents.task import Submission
from itbench.core.documents.vocabulary import canonical_entity, canonical_mechanism
from itbench.evaluate.registry import Case, Finding, Spec, check

MAX_CAUSES = 8
"""Predictions beyond this number only lower the score; nobody has eight root causes."""


class DiagnosisSpec(Spec):
    """Every root cause named, with its mechanism, and nothing else."""

    chain: bool = False


class VerdictSpec(Spec):
    """The typed verdict equals the true one."""


def credit(entity: str, mechanism: str, truth: RootCause) -> float:
    """Credit of one prediction for one true cause, alternatives included."""
    return max(_credit(entity, mechanism, cause) for cause in (truth, *truth.alternatives))


def _credit(entity: str, mechanism: str, cause: Cause) -> float:
    wanted, right = canonical_entity(cause.entity), canonical_mechanism(cause.mechanism) == mechanism
    if entity == wanted:
        return 1.0 if right else 0.5
    return 0.25 if right and entity.split("/")[1:] == wanted.split("/")[1:] else 0.0


def score(predicted: list[tuple[str, str]], truth: tuple[RootCause, ...]) -> float:
    """The score of a diagnosis, 0 to 1; with no true cause, 1 for an empty answer or `none`, else 0."""
    if not truth:
        return float(all(mechanism == "none" for _, mechanism in predicted))
    considered = predicted[:MAX_CAUSES]
    table = [[credit(entity, mechanism, cause) for cause in truth] for entity, mechanism in considered]
    return 2.0 * _best(table, len(truth)) / (len(predicted) + len(truth))


def _best(table: list[list[float]], width: int) -> float:
    """Largest sum of a one-to-one matching (the tables are tiny)."""
    if not table:
        return 0.0
    if len(table) <= width:
        return max(
            sum(row[column] for row, column in zip(table, columns))
            for columns in permutations(range(width), len(table))
        )
    return max(
        sum(table[row][column] for column, row in enumerate(rows)) for rows in permutations(range(len(table)), width)
    )


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
    value = score(predicted, truth)
    seen = "; ".join(f"{entity} {mechanism}" for entity, mechanism in predicted) or "no cause"
    return Finding(value >= 1.0 - 1e-9, wanted, seen, "submission.diagnosis", score=value)


@check("verdict", VerdictSpec, answer="verdict")
def grade_verdict(spec: VerdictSpec, case: Case) -> Finding:
    """The verdict as typed in the submission against the truth."""
    given = submission(case)
    seen = "no submission" if given is None else (given.verdict or "none given")
    return Finding(seen == case.scenario.truth.verdict, case.scenario.truth.verdict, seen, "submission.verdict")
