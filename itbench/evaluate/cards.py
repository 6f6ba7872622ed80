"""Which function implements which metric card. A card without a function, or the other way round, fails the tests."""

from collections.abc import Callable
from typing import Any

from itbench.core.documents.scenario import RootCause
from itbench.core.statistics import repeats
from itbench.evaluate import diagnosis, finops, metrics, policies


def diagnosis_score(predicted: list[tuple[str, str]], truth: list[dict[str, Any]]) -> float:
    """Partial credit of a diagnosis; see `itbench.evaluate.diagnosis`."""
    causes = tuple(RootCause.model_validate(cause) for cause in truth)
    return diagnosis.score([(entity, mechanism) for entity, mechanism in predicted], causes)


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "sre/pass_at_1": metrics.pass_at_1,
    "sre/pass_at_k": repeats.pass_at_k,
    "sre/pass_hat_k": repeats.pass_hat_k,
    "sre/time_to_mitigate": metrics.time_to_recover,
    "sre/requests_lost": metrics.requests_lost,
    "sre/destructive_actions": metrics.destructive_actions,
    "sre/diagnosis_score": diagnosis_score,
    "finops/savings_captured": finops.savings_captured,
    "finops/regret": finops.regret,
    "finops/waste_detection": finops.waste_detection,
    "finops/policy_compliance": finops.policy_compliance,
    "finops/claim_error": finops.claim_error,
    "finops/cause_match": finops.cause_match,
    "finops/impact_error": finops.impact_error,
    "ciso/sensitivity": policies.sensitivity,
    "ciso/specificity": policies.specificity,
    "ciso/policy_compliance": policies.policy_compliance,
}
