"""Times with a limit: how long until an agent mitigates, when some never do. Called by summaries, `itbench compare`, the report.

A trial that reaches the limit is neither missing nor equal to the limit: it is censored. Averages over those who made it flatter
the agent that solves only what is easy. Giving up and claiming wrongly are no censoring either: who does so is mitigated at no
time, so such trials stay at risk to the limit (`at_risk_to`).
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import TypeVar

from itbench.core.statistics.quantiles import chi_squared_tail

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Time:
    """One trial's time in seconds: of the event, or until which it was seen without one (`event` False)."""

    seconds: float
    event: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.seconds < float("inf"):
            raise ValueError(f"a time is a finite number of seconds from 0 on, got {self.seconds}")


def at_risk_to(limit_s: float, seconds: Sequence[float | None]) -> list[Time]:
    """Times to mitigation up to a limit: None (gave up, claimed wrongly, ran out of time) and later ones are censored there."""
    return [Time(each) if each is not None and each <= limit_s else Time(limit_s, event=False) for each in seconds]


@dataclass(frozen=True, slots=True)
class Curve:
    """A Kaplan-Meier curve: share not yet there.

    Args:
        times: seconds of events, rising. survival: S just from that time on, same length.
        n: trials. events: how many had the event.
    """

    times: tuple[float, ...]
    survival: tuple[float, ...]
    n: int
    events: int

    def at(self, seconds: float) -> float:
        """S(t)."""
        value = 1.0
        for time, share in zip(self.times, self.survival, strict=True):
            if time > seconds:
                break
            value = share
        return value

    def incidence(self, seconds: float) -> float:
        """1 - S(t): the share that is there by then."""
        return 1.0 - self.at(seconds)

    def median(self) -> float | None:
        """The first time at which S <= 1/2; None when it never falls so far."""
        return next((time for time, share in zip(self.times, self.survival, strict=True) if share <= 0.5 + 1e-12), None)

    def restricted_mean(self, limit_s: float) -> float:
        """RMST(tau) = integral of S from 0 to tau, in seconds. Source: Royston and Parmar 2013."""
        edges = [0.0, *(time for time in self.times if time < limit_s), limit_s]
        heights = [1.0, *self.survival]
        return fsum((end - start) * height for start, end, height in zip(edges, edges[1:], heights, strict=False))


def kaplan_meier(times: Sequence[Time]) -> Curve:
    """S(t) = product over event times up to t of (1 - d/n). Source: Kaplan and Meier 1958.

    Raises:
        ValueError: no times.
    """
    if not times:
        raise ValueError("a survival curve needs at least one time")
    share, at, shares = 1.0, sorted({time.seconds for time in times if time.event}), []
    for moment in at:
        at_risk = sum(time.seconds >= moment for time in times)
        happened = sum(time.event and time.seconds == moment for time in times)
        share *= 1 - happened / at_risk
        shares.append(share)
    return Curve(tuple(at), tuple(shares), len(times), sum(time.event for time in times))


def restricted_mean(times: Sequence[Time], limit_s: float) -> float:
    """RMST(tau) of trials, in seconds; the mean of min(T, tau) where nothing is censored before tau."""
    return kaplan_meier(times).restricted_mean(limit_s)


def restricted_mean_se(times: Sequence[Time], limit_s: float) -> float:
    """Greenwood-type standard error of RMST(tau) for independent trials of one scenario, in seconds.

    Source: Klein and Moeschberger 2003, section 4.5.
    """
    curve, total = kaplan_meier(times), 0.0
    whole = curve.restricted_mean(limit_s)
    for moment in curve.times:
        if moment > limit_s:
            break
        at_risk = sum(time.seconds >= moment for time in times)
        happened = sum(time.event and time.seconds == moment for time in times)
        if at_risk > happened:
            rest = whole - curve.restricted_mean(moment)
            total += rest**2 * happened / (at_risk * (at_risk - happened))
    return sqrt(total)


def par2(times: Sequence[Time], limit_s: float) -> float:
    """PAR-2: the mean where an unsolved trial counts twice the limit, in seconds; only where one ranking number is demanded."""
    solved = [time.event and time.seconds <= limit_s for time in times]
    return fsum(time.seconds if done else 2 * limit_s for time, done in zip(times, solved, strict=True)) / len(times)


def scenario_restricted_means(times: Mapping[K, Sequence[Time]], limit_s: float) -> dict[K, float]:
    """RMST(tau) of each scenario that has a trial: the values that comparisons pair and cluster."""
    return {name: restricted_mean(each, limit_s) for name, each in times.items() if each}


@dataclass(frozen=True, slots=True)
class LogRank:
    """A stratified log-rank test: statistic (chi squared, 1 df) and p; p is 1 where nothing could differ."""

    statistic: float
    p: float


def log_rank(a: Mapping[K, Sequence[Time]], b: Mapping[K, Sequence[Time]]) -> LogRank:
    """Whether two agents mitigate at the same rate, each scenario a stratum of its own.

    Args:
        a: scenario -> times of A. b: the same of B; scenarios that only one has are left out.

    Source: Mantel 1966, stratified. It takes trials as independent within a scenario.
    """
    excess, variance = 0.0, 0.0
    for name in a:
        if not a[name] or not b.get(name):
            continue
        for moment in sorted({time.seconds for time in (*a[name], *b[name]) if time.event}):
            risk_a, risk_b = (sum(time.seconds >= moment for time in side[name]) for side in (a, b))
            hits_a, hits_b = (sum(time.event and time.seconds == moment for time in side[name]) for side in (a, b))
            n, hits = risk_a + risk_b, hits_a + hits_b
            excess += hits_a - hits * risk_a / n
            if n > 1:
                variance += hits * (risk_a / n) * (risk_b / n) * (n - hits) / (n - 1)
    if variance <= 0:
        return LogRank(0.0, 1.0)
    statistic = excess * excess / variance
    return LogRank(statistic, chi_squared_tail(statistic))
