"""Several trials of one scenario: unbiased pass@k and pass^k. Called by the metric cards and the summaries of runs.

pass^k is the number for operations: an agent that repairs three pages in four cannot be left alone.
"""

from collections.abc import Hashable, Mapping
from math import comb
from typing import Literal, TypeVar

from itbench.core.statistics.estimate import Estimate, undefined
from itbench.core.statistics.headline import clustered_mean

K = TypeVar("K", bound=Hashable)
Counts = tuple[int, int]
"""(valid trials n, passes c) of one scenario."""


def pass_at_k(n: int, c: int, k: int) -> float:
    """Chance that at least one of k trials, drawn without replacement from n of which c pass, passes: 1 - C(n-c,k)/C(n,k).

    Raises:
        ValueError: not 0 <= c <= n, or not 1 <= k <= n; with fewer than k trials the number does not exist.

    Source: Chen et al. 2021 (arXiv 2107.03374), equation 1.
    """
    _bounds("pass@k", n, c, k)
    return 1.0 - comb(n - c, k) / comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Chance that all of k trials, drawn without replacement from n of which c pass, pass: C(c,k)/C(n,k).

    Raises:
        ValueError: as `pass_at_k`.

    Source: Yao et al. 2024, tau-bench (arXiv 2406.12045), section 3.
    """
    _bounds("pass^k", n, c, k)
    return comb(c, k) / comb(n, k)


def _bounds(what: str, n: int, c: int, k: int) -> None:
    if not 0 <= c <= n or not 1 <= k <= n:
        raise ValueError(f"{what} needs 0 <= c <= n and 1 <= k <= n, got n={n}, c={c}, k={k}")


def over_scenarios(
    kind: Literal["pass@", "pass^"],
    counts: Mapping[K, Counts],
    k: int,
    family_of: Mapping[K, str],
    level: float = 0.95,
) -> Estimate:
    """pass@k or pass^k averaged over scenarios, with the clustered interval of `headline`.

    Args:
        kind: which of the two.
        counts: scenario -> (n, c).
        k: trials that are drawn.
        family_of: family of every scenario.
        level: of the interval.

    Returns:
        Undefined, with the scenarios that are short, when one has fewer than k trials: k is never lowered silently.
    """
    short = [str(name) for name, (n, _) in counts.items() if n < k]
    if short:
        return undefined(f"fewer than {k} valid trials: {', '.join(short)}")
    one = pass_at_k if kind == "pass@" else pass_hat_k
    values = {name: one(n, c, k) for name, (n, c) in counts.items()}
    return clustered_mean(values, family_of, level)
