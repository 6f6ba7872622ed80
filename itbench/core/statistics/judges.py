"""Judges that err: correcting a rate for their errors, and how far they agree. Called where a judge gives a second opinion."""

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import permutations
from math import sqrt

from itbench.core.statistics.clusters import mean
from itbench.core.statistics.estimate import Estimate, undefined
from itbench.core.statistics.quantiles import normal_quantile

QUESTION = "the rate that people would have found"


def rogan_gladen(rate: float, sensitivity: float, specificity: float) -> float:
    """The true rate behind a judged one: (q + sp - 1) / (se + sp - 1), raw; it may leave [0, 1].

    Raises:
        ValueError: se + sp <= 1, a judge no better than a coin.

    Source: Rogan and Gladen 1978.
    """
    if sensitivity + specificity <= 1:
        raise ValueError(f"a judge needs sensitivity + specificity > 1, got {sensitivity} and {specificity}")
    return (rate + specificity - 1) / (sensitivity + specificity - 1)


def corrected_rate(
    judged: tuple[int, int], positives: tuple[int, int], negatives: tuple[int, int], level: float = 0.95
) -> Estimate:
    """The true rate, with the uncertainty of the judged sample and of the calibration.

    Args:
        judged: (said yes, of) in the sample without human labels.
        positives: (said yes, of) among those that people labelled yes.
        negatives: (said no, of) among those that people labelled no.
        level: of the interval, by the delta method.

    Returns:
        Undefined, `uninformative`, where the corrected value leaves [0, 1]: it is not cut silently.
    """
    if min(judged[1], positives[1], negatives[1]) < 1:
        return undefined("no calibration or no sample", question=QUESTION)
    q, se, sp = (hits / n for hits, n in (judged, positives, negatives))
    if se + sp <= 1:
        return undefined("uninformative: the judge is no better than chance", question=QUESTION)
    value, power = rogan_gladen(q, se, sp), se + sp - 1
    if not 0 <= value <= 1:
        return undefined("uninformative: the corrected rate leaves [0, 1]", question=QUESTION)
    parts = (
        q * (1 - q) / judged[1],
        value**2 * se * (1 - se) / positives[1],
        (1 - value) ** 2 * sp * (1 - sp) / negatives[1],
    )
    error = sqrt(sum(parts)) / power
    half = normal_quantile((1 + level) / 2) * error
    return Estimate(value, value - half, value + half, level, None, "Rogan-Gladen", judged[1], QUESTION, se=error)


def prediction_powered(
    judged: Sequence[float], labelled: Sequence[tuple[float, float]], level: float = 0.95
) -> Estimate:
    """The mean that people would give: the judge's mean, moved by its mean error where people looked too.

    Args:
        judged: the judge's scores of trials without labels.
        labelled: (person's score, judge's score) of trials with both.
        level: of the interval.

    Source: Angelopoulos et al. 2023 (arXiv 2301.09633).
    """
    if len(judged) < 2 or len(labelled) < 2:
        return undefined("needs two judged and two labelled trials", question=QUESTION)
    errors = [person - judge for person, judge in labelled]
    value = mean(judged) + mean(errors)
    error = sqrt(_variance(judged) / len(judged) + _variance(errors) / len(errors))
    half = normal_quantile((1 + level) / 2) * error
    return Estimate(
        value, value - half, value + half, level, None, "prediction-powered", len(labelled), QUESTION, se=error
    )


def _variance(values: Sequence[float]) -> float:
    centre = mean(values)
    return sum((value - centre) ** 2 for value in values) / (len(values) - 1)


def krippendorff_alpha(units: Sequence[Sequence[Hashable | None]]) -> float | None:
    """Agreement of judges on nominal verdicts: 1 perfect, 0 by chance.

    Args:
        units: per unit the verdict of each judge; None where one gave none.

    Returns:
        None where nothing can be compared: no unit with two verdicts, or only one verdict in all.

    Source: Krippendorff 2011.
    """
    pairs: Counter[tuple[Hashable, Hashable]] = Counter()
    weights: dict[tuple[Hashable, Hashable], float] = {}
    for unit in units:
        given = [verdict for verdict in unit if verdict is not None]
        if len(given) < 2:
            continue
        pairs = Counter(permutations(given, 2))
        for pair, count in pairs.items():
            weights[pair] = weights.get(pair, 0.0) + count / (len(given) - 1)
    totals: dict[Hashable, float] = {}
    for (one, _), weight in weights.items():
        totals[one] = totals.get(one, 0.0) + weight
    n = sum(totals.values())
    expected = sum(totals[one] * totals[two] for one in totals for two in totals if one != two)
    if n <= 1 or expected <= 0:
        return None
    observed = sum(weight for (one, two), weight in weights.items() if one != two)
    return 1 - (n - 1) * observed / expected
