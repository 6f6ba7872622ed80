"""Two agents against each other, item by item: what differs, how much, and how sure that is. Pure; used by `itbench compare`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from itbench.core.statistics.bootstrap import cluster_bootstrap
from itbench.core.statistics.clusters import mean
from itbench.core.statistics.estimate import Estimate, undefined
from itbench.core.statistics.headline import SAME, scenario_means
from itbench.core.statistics.multiplicity import holm
from itbench.core.statistics.paired import LEAST_FAMILIES, Comparison, compare, differences, mcnemar
from itbench.core.statistics.paired import fixed_suite_difference as same_suite
from itbench.core.statistics.power import detectable_from_se
from itbench.core.statistics.survival import LogRank, log_rank, scenario_restricted_means
from itbench.evaluate.items import LIMIT_S, times_of
from itbench.evaluate.standing import Standing

ALPHA = 0.05


@dataclass(frozen=True)
class Times:
    """Times to mitigation of both: A minus B of restricted means in seconds; log-rank test by scenario, trials unrelated."""

    difference: Estimate
    test: LogRank


@dataclass(frozen=True)
class Contest:
    """A against B.

    Args:
        a: name of A. b: name of B.
        outcome: comparison of pass rates over the items that both have: A minus B, test, record.
        fixed: the same difference as an estimate for another run of exactly these items.
        p_adjusted: p after Holm within the declared set of contests; equals p for a single one.
        mcnemar_p: exact p where each item has one trial of each; None otherwise.
        detectable: smallest true difference that this comparison would have seen with 80 % power; None without an interval.
        families: families of the common items.
        only_a: items that only A has. only_b: the same of B.
        domains: the same comparison inside each domain, with its Holm-adjusted p, where there are several.
        times: None where no common item measures them.
        invalid_share: the larger share of invalid trials of the two.
        comparable: whether both have few enough of them.
    """

    a: str
    b: str
    outcome: Comparison
    fixed: Estimate
    p_adjusted: float
    mcnemar_p: float | None
    detectable: float | None
    families: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    domains: dict[str, tuple[Comparison, float]]
    times: Times | None
    invalid_share: float
    comparable: bool

    @property
    def significant(self) -> bool:
        """Whether the adjusted p is at most 0.05."""
        return self.p_adjusted <= ALPHA


def contest(
    a: Standing, b: Standing, names: tuple[str, str] = ("", ""), *, level: float = 0.95, seed: int = 0
) -> Contest:
    """Compare two agents on the items that both have a valid trial of.

    Args:
        a: the first. b: the second.
        names: how they are called; their agents' names by default.
        level: of the intervals.
        seed: of permutation and bootstrap draws.
    """
    trials = [{name: item.scores for name, item in each.items.items() if item.scores} for each in (a, b)]
    family_of = {name: item.family for each in (a, b) for name, item in each.items.items()}
    common = [name for name in trials[0] if name in trials[1]]
    means = [scenario_means({name: each[name] for name in common}) for each in trials]
    outcome = compare(means[0], means[1], family_of, level=level, seed=seed)
    found = outcome.difference
    seen = detectable_from_se(found.se, found.df) if found.defined and found.se and found.df else None
    single = all(len(each[name]) == 1 for each in trials for name in common)
    wins, losses = len(outcome.record.wins), len(outcome.record.losses)
    return Contest(
        a=names[0] or a.agent,
        b=names[1] or b.agent,
        outcome=outcome,
        fixed=same_suite({n: trials[0][n] for n in common}, {n: trials[1][n] for n in common}, level)
        if common
        else undefined("no common item", question=SAME),
        p_adjusted=outcome.test.p,
        mcnemar_p=mcnemar(wins, losses) if single and common else None,
        detectable=seen,
        families=len({family_of[name] for name in common}),
        only_a=tuple(name for name in trials[0] if name not in trials[1]),
        only_b=tuple(name for name in trials[1] if name not in trials[0]),
        domains=_domains(a, means, family_of, level, seed),
        times=_times(a, b, family_of, level, seed),
        invalid_share=max(a.bounds.invalid_share, b.bounds.invalid_share),
        comparable=a.bounds.comparable and b.bounds.comparable,
    )


def _domains(
    a: Standing, means: Sequence[dict[str, float]], family_of: dict[str, str], level: float, seed: int
) -> dict[str, tuple[Comparison, float]]:
    """One comparison for each domain, p adjusted over the domains; nothing where there is one domain only."""
    names = list(dict.fromkeys(a.items[name].domain for name in means[0]))
    if len(names) < 2:
        return {}
    found = []
    for domain in names:
        parts = [{name: each[name] for name in each if a.items[name].domain == domain} for each in means]
        found.append(compare(parts[0], parts[1], family_of, level=level, seed=seed))
    return dict(zip(names, zip(found, holm([each.test.p for each in found]), strict=True), strict=True))


def _times(a: Standing, b: Standing, family_of: dict[str, str], level: float, seed: int) -> Times | None:
    sides = [times_of(each.items, LIMIT_S) for each in (a, b)]
    common = [name for name in sides[0] if name in sides[1]]
    if not common:
        return None
    d = differences(*(scenario_restricted_means({name: each[name] for name in common}, LIMIT_S) for each in sides))
    return Times(cluster_bootstrap(d, family_of, mean, level=level, seed=seed), log_rank(sides[0], sides[1]))


def adjusted(contests: Sequence[Contest]) -> list[Contest]:
    """The same contests with p-values adjusted by Holm over the whole set."""
    p_values = holm([each.outcome.test.p for each in contests])
    return [replace(each, p_adjusted=p) for each, p in zip(contests, p_values, strict=True)]


def verdict(found: Contest) -> str:
    """One sentence that says what may be concluded, and no more."""
    difference, test = found.outcome.difference, found.outcome.test
    points = 100 * (difference.value or 0.0)
    said = f"{found.a} minus {found.b}: {points:+.1f} points of pass@1"
    if difference.defined and difference.low is not None and difference.high is not None:
        said += f", {difference.level:.0%} interval {100 * difference.low:+.1f} to {100 * difference.high:+.1f}"
    said += f", p = {found.p_adjusted:.3g}"
    if not found.comparable:
        return f"Not comparable, {found.invalid_share:.0%} of the trials are invalid; {said}."
    if found.significant:
        better, worse = (found.a, found.b) if points > 0 else (found.b, found.a)
        return f"{better} passes more often than {worse}: {said}."
    if test.families == 0:
        return f"No scenario tells them apart: {said}."
    if test.families < LEAST_FAMILIES:
        return (
            f"Too few families to tell: {said}; {test.families} of {found.families} families differ, and with fewer than "
            f"{LEAST_FAMILIES} no p can be below {ALPHA} (here not below {test.floor:.3g})."
        )
    seen = (
        "" if found.detectable is None else f"; a difference below {100 * found.detectable:.0f} points would be missed"
    )
    return f"No difference is shown, which is not to say that there is none: {said}{seen} (80 % power)."
