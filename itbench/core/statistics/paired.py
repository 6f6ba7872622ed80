"""Two agents on the same scenarios, seeds and limits: how they differ, and whether that is more than chance.

Called by `itbench compare`. Pairing is free precision: what makes a scenario hard is hard for both, and cancels.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import comb, fsum, sqrt
from typing import TypeVar

from itbench.core.statistics.clusters import families
from itbench.core.statistics.estimate import Estimate, undefined
from itbench.core.statistics.headline import SAME, clustered_t, fixed_suite
from itbench.core.statistics.quantiles import t_cdf, t_quantile

K = TypeVar("K", bound=Hashable)
EXACT_FAMILIES = 14
"""Up to here all 2^C flips are enumerated; beyond, drawn."""
DRAWS = 10_000
LEAST_FAMILIES = 6
"""With fewer the smallest possible two-sided p is above 0.05: 2/2^5 = 0.0625."""
_TIE = 1e-9


def differences(a: Mapping[K, float], b: Mapping[K, float]) -> dict[K, float]:
    """d_i = A_i - B_i for every scenario that both have, in the order of A; what only one has is left to the caller to tell."""
    return {name: a[name] - b[name] for name in a if name in b}


@dataclass(frozen=True, slots=True)
class Permutation:
    """Outcome of a sign-flip test.

    Args:
        p: two-sided p-value.
        exact: whether all flips were enumerated.
        floor: the smallest p that this number of families can give.
        families: how many differ at all; the others cannot tell anything.
    """

    p: float
    exact: bool
    floor: float
    families: int


def sign_flip(d: Mapping[K, float], family_of: Mapping[K, str], *, seed: int = 0, draws: int = DRAWS) -> Permutation:
    """Cluster sign-flip permutation test of a mean difference of 0.

    Under the null the names A and B could be swapped within every family; all differences of one family flip together.

    Args:
        d: scenario -> difference.
        family_of: family of every scenario.
        seed: of the draws, where there are more than `EXACT_FAMILIES` families.
        draws: how many; p is then (b + 1) / (m + 1).

    Source: Good 2005; Cameron, Gelbach and Miller 2008 (clusters).
    """
    totals = [fsum(d[name] for name in members) for members in families(list(d), family_of).values()]
    # Families that do not differ change no flip; order and sign of the others are no information for the flips.
    moved = sorted(abs(total) for total in totals if abs(total) > _TIE)
    count = len(moved)
    if not moved:
        return Permutation(1.0, True, 1.0, 0)
    floor = 2.0 ** (1 - count)
    if count <= EXACT_FAMILIES:
        return Permutation(_enumerated(moved, fsum(totals)), True, floor, count)
    return Permutation(max(floor, _drawn(moved, fsum(totals), seed, draws)), False, floor, count)


def _enumerated(totals: list[float], seen: float) -> float:
    """Share of all sign patterns whose sum is at least as far from 0. The first sign is fixed: both halves are alike."""
    sums = [totals[0]]
    for total in totals[1:]:
        sums = [each + sign for each in sums for sign in (total, -total)]
    observed = abs(seen) - _TIE
    return float(sum(abs(each) >= observed for each in sums) / len(sums))


def _drawn(totals: list[float], seen: float, seed: int, draws: int) -> float:
    import numpy as np

    generator = np.random.Generator(np.random.PCG64(seed))
    signs = generator.integers(0, 2, size=(draws, len(totals)), dtype=np.int8) * 2 - 1
    sums = np.abs(signs @ np.asarray(totals))
    return float((np.count_nonzero(sums >= abs(seen) - _TIE) + 1) / (draws + 1))


def mcnemar(only_a: int, only_b: int) -> float:
    """Exact two-sided p for one trial per scenario: min(1, 2 P[Bin(b + c, 1/2) <= min(b, c)]).

    Args:
        only_a: scenarios that only A passes.
        only_b: scenarios that only B passes.

    Source: McNemar 1947, exact form. It takes scenarios as unrelated.
    """
    if min(only_a, only_b) < 0:
        raise ValueError(f"counts cannot be negative, got {only_a} and {only_b}")
    n = only_a + only_b
    return min(1.0, 2 * sum(comb(n, i) for i in range(min(only_a, only_b) + 1)) / (1 << n))


@dataclass(frozen=True, slots=True)
class Record:
    """Scenarios that A wins, draws and loses, by name, in order."""

    wins: tuple[str, ...]
    ties: tuple[str, ...]
    losses: tuple[str, ...]


def record(d: Mapping[K, float]) -> Record:
    """Win, tie and loss by name; differences within rounding are ties."""
    return Record(
        tuple(str(name) for name, value in d.items() if value > _TIE),
        tuple(str(name) for name, value in d.items() if abs(value) <= _TIE),
        tuple(str(name) for name, value in d.items() if value < -_TIE),
    )


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that is to be told about two agents: A minus B."""

    difference: Estimate
    test: Permutation
    record: Record


def compare(
    a: Mapping[K, float], b: Mapping[K, float], family_of: Mapping[K, str], *, level: float = 0.95, seed: int = 0
) -> Comparison:
    """Compare scenario means of two agents.

    Args:
        a: scenario -> mean score of A.
        b: the same of B; scenarios that only one has are left out.
        family_of: family of every scenario.
        level: of the interval on the difference.
        seed: of the permutation draws.
    """
    d = differences(a, b)
    return Comparison(clustered_t(d, family_of, level), sign_flip(d, family_of, seed=seed), record(d))


def fixed_suite_difference(
    a: Mapping[K, Sequence[float]], b: Mapping[K, Sequence[float]], level: float = 0.95
) -> Estimate:
    """A - B as an estimate for another run of exactly these scenarios, for regression gates.

    Args:
        a: scenario -> scores of A's valid trials. b: the same of B, for the same scenarios.
        level: of the interval; standard errors add in squares, degrees of freedom by Welch and Satterthwaite.

    Returns:
        Undefined where a scenario has fewer than two trials of an agent, or no trial differs from the others of its scenario.
    """
    parts = [fixed_suite(each, level) for each in (a, b)]
    if parts[0].value is None or parts[1].value is None:
        return undefined("no valid trial", question=SAME)
    value = parts[0].value - parts[1].value
    reason = next((part.undefined_reason for part in parts if part.undefined_reason), "")
    if reason:
        return undefined(reason, value=value, n_units=len(a), question=SAME)
    terms = [((part.se or 0.0) ** 2, part.df or 1.0) for part in parts]
    variance = fsum(term for term, _ in terms)
    if variance <= 0:
        return undefined("all trials of a scenario are alike: no spread to judge by", value=value, question=SAME)
    df, se = variance**2 / fsum(term * term / each for term, each in terms), sqrt(variance)
    half = t_quantile((1 + level) / 2, df) * se
    return Estimate(value, value - half, value + half, level, df, "t within scenarios, Welch", len(a), SAME, se=se)


def equivalence(difference: Estimate, margin: float) -> float | None:
    """p of the two one-sided tests that the difference lies within +-margin; None without an interval.

    Small: no worse and no better by more than the margin. Source: Schuirmann 1987 (TOST).

    Args:
        difference: clustered t estimate of A - B.
        margin: > 0, in the unit of the difference.
    """
    if margin <= 0:
        raise ValueError(f"the margin is a positive number, got {margin}")
    if not difference.defined or difference.value is None or not difference.se or difference.df is None:
        return None
    above = t_cdf((difference.value + margin) / difference.se, difference.df)
    below = t_cdf((margin - difference.value) / difference.se, difference.df)
    return 1 - min(above, below)


def no_worse(difference: Estimate, margin: float, level: float = 0.95) -> bool | None:
    """Whether A is not worse than B by more than `margin`: the one-sided lower bound lies above it. None without an interval."""
    if not difference.defined or difference.value is None or not difference.se or difference.df is None:
        return None
    return difference.value - t_quantile(level, difference.df) * difference.se > -margin
