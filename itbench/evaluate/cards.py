"""Which function implements which metric card. A card without a function, or the other way round, fails the tests."""

from collections.abc import Callable
from typing import Any

from itbench.core.documents.scenario import RootCause
from itbench.core.statistics import repeats, survival
from itbench.evaluate import diagnosis, finops, localisation, metrics, policies
from itbench.evaluate.topology import Topology


def diagnosis_score(predicted: list[tuple[str, str]], truth: list[dict[str, Any]]) -> float:
    """Partial credit of a diagnosis; see `itbench.evaluate.diagnosis`."""
    causes = tuple(RootCause.model_validate(cause) for cause in truth)
    return diagnosis.score([(entity, mechanism) for entity, mechanism in predicted], causes)


def diagnosis_precision(predicted: list[tuple[str, str]], truth: list[dict[str, Any]]) -> float:
    """Share of named entities that are true ones, 0 when one is missed; see `itbench.evaluate.localisation`."""
    causes = tuple(RootCause.model_validate(cause) for cause in truth)
    return localisation.precision([(entity, mechanism) for entity, mechanism in predicted], causes, Topology())


def diagnosis_chain(named: list[list[str]], true: list[list[str]]) -> float:
    """F1 of the directed edges of propagation; see `itbench.evaluate.localisation`."""
    return localisation.chain_score(named, true, Topology())


def restricted_mean_time(times_s: list[float | None], limit_s: float) -> float:
    """Restricted mean of the trials of one scenario; None is a trial that was never mitigated."""
    return survival.restricted_mean(survival.at_risk_to(limit_s, times_s), limit_s)


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "sre/pass_at_1": metrics.pass_at_1,
    "sre/pass_at_k": repeats.pass_at_k,
    "sre/pass_hat_k": repeats.pass_hat_k,
    "sre/time_to_mitigate": metrics.time_to_recover,
    "sre/requests_lost": metrics.requests_lost,
    "sre/destructive_actions": metrics.destructive_actions,
    "sre/diagnosis_score": diagnosis_score,
    "sre/diagnosis_precision": diagnosis_precision,
    "sre/diagnosis_chain": diagnosis_chain,
    "sre/restricted_mean_time": restricted_mean_time,
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
