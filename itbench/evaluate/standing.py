"""How one agent did in a run: pass rates with their intervals, bounds for invalid trials, times. Pure, from results.

The summary of `itbench run`, the report and `itbench compare` all read this, so that no number is computed in two ways.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from itbench.core.documents.result import Result
from itbench.core.statistics.adjust import DOMAIN_WEIGHTS, macro_average
from itbench.core.statistics.clusters import mean
from itbench.core.statistics.estimate import Estimate, show, undefined
from itbench.core.statistics.headline import OTHERS, clustered_mean, clustered_t, scenario_means
from itbench.core.statistics.invalid import MOST_INVALID, Bounds, bounds
from itbench.core.statistics.repeats import over_scenarios
from itbench.core.statistics.survival import kaplan_meier, scenario_restricted_means
from itbench.evaluate.items import LIMIT_S, Item, items, times_of

SPANS_S = (300.0, 600.0, 1800.0)
"""Share mitigated by then is printed: 5, 10 and 30 minutes."""


@dataclass(frozen=True)
class Standing:
    """What is told of one agent.

    Args:
        agent: its name.
        items: by name.
        pass_rate: the headline, pass@1: mean of scenario means; over several domains their mean with fixed weights.
        bounds: over trials, what the invalid ones could change.
        k: the most valid trials that an item has.
        pass_hat: pass^k. pass_any: pass@k. Both undefined when an item has fewer than k valid trials.
        domains: pass@1 of each domain.
        restricted_mean_s: restricted mean time to mitigate over items that measure it; None where none does.
        mitigated_by: world seconds -> share mitigated by then, mean over the same items.
    """

    agent: str
    items: dict[str, Item]
    pass_rate: Estimate
    bounds: Bounds
    k: int
    pass_hat: Estimate
    pass_any: Estimate
    domains: dict[str, Estimate] = field(default_factory=dict)
    restricted_mean_s: Estimate | None = None
    mitigated_by: dict[float, float] = field(default_factory=dict)

    @property
    def families(self) -> int:
        """How many families its items with valid trials have."""
        return len({item.family for item in self.items.values() if item.scores})

    def as_json(self) -> dict[str, object]:
        """Plain data for programs."""
        right, wrong = mitigated_given(self)
        return {
            "agent": self.agent,
            "scenarios": len(self.items),
            "families": self.families,
            "trials": sum(len(item.outcomes) for item in self.items.values()),
            "pass_at_1": self.pass_rate.as_json(),
            "k": self.k,
            "pass_hat_k": self.pass_hat.as_json(),
            "pass_at_k": self.pass_any.as_json(),
            "domains": {name: estimate.as_json() for name, estimate in self.domains.items()},
            "valid_only": self.bounds.valid_only,
            "as_failed": self.bounds.as_failed,
            "bounds": [self.bounds.low, self.bounds.high],
            "invalid_share": self.bounds.invalid_share,
            "restricted_mean_time_to_mitigate_s": self.restricted_mean_s and self.restricted_mean_s.as_json(),
            "mitigated_by_s": {f"{span:g}": share for span, share in self.mitigated_by.items()},
            "mitigated_given_diagnosis": {"right": right, "wrong": wrong},
        }


def standing(agent: str, results: Iterable[Result], level: float = 0.95) -> Standing:
    """How an agent did.

    Args:
        agent: its name.
        results: its trials, of any scenarios.
        level: of the intervals.
    """
    found = items(results)
    outcomes = [outcome for item in found.values() for outcome in item.outcomes]
    family_of = {name: item.family for name, item in found.items()}
    counts = {name: (len(item.scores), round(sum(item.scores))) for name, item in found.items() if item.scores}
    k = max((n for n, _ in counts.values()), default=0)
    none = undefined("no valid trial", question=OTHERS)
    domains = _by_domain(found, level)
    times, by = _times(found, level)
    return Standing(
        agent=agent,
        items=found,
        pass_rate=next(iter(domains.values()), none)
        if len(domains) < 2
        else macro_average(domains, _weights(domains), level),
        bounds=bounds(*(outcomes.count(each) for each in ("pass", "fail", "invalid"))),
        k=k,
        pass_hat=over_scenarios("pass^", counts, k, family_of, level) if k else none,
        pass_any=over_scenarios("pass@", counts, k, family_of, level) if k else none,
        domains=domains,
        restricted_mean_s=times,
        mitigated_by=by,
    )


def standings(results: Iterable[Result], level: float = 0.95) -> list[Standing]:
    """One for each agent, in order of first appearance."""
    by_agent: dict[str, list[Result]] = {}
    for result in results:
        by_agent.setdefault(result.agent, []).append(result)
    return [standing(agent, each, level) for agent, each in by_agent.items()]


def _by_domain(found: dict[str, Item], level: float) -> dict[str, Estimate]:
    estimates = {}
    for domain in dict.fromkeys(item.domain for item in found.values()):
        inside = {name: item for name, item in found.items() if item.domain == domain and item.scores}
        means = scenario_means({name: item.scores for name, item in inside.items()})
        if means:
            estimates[domain] = clustered_mean(means, {name: item.family for name, item in inside.items()}, level)
    return estimates


def _weights(domains: Iterable[str]) -> dict[str, float]:
    """The published weights; a domain that is not among them weighs like one of them."""
    return {domain: DOMAIN_WEIGHTS.get(domain, 1 / 3) for domain in domains}


def _times(found: dict[str, Item], level: float) -> tuple[Estimate | None, dict[float, float]]:
    times = times_of(found)
    if not times:
        return None, {}
    means = scenario_restricted_means(times, LIMIT_S)
    curves = [kaplan_meier(each) for each in times.values()]
    by = {span: mean([curve.incidence(span) for curve in curves]) for span in SPANS_S}
    return clustered_t(means, {name: found[name].family for name in means}, level), by


def mitigated_given(whole: Standing) -> tuple[float | None, float | None]:
    """Share of trials that mitigated, among those with a right diagnosis and among those with a wrong one."""
    pairs = [pair for item in whole.items.values() for pair in item.after]

    def share(right: bool) -> float | None:
        chosen = [mitigated for diagnosed, mitigated in pairs if diagnosed == right]
        return sum(chosen) / len(chosen) if chosen else None

    return share(True), share(False)


def lines(whole: Standing) -> list[tuple[str, str]]:
    """A standing in words: (what, fact), the headline first."""
    valid = sum(len(item.scores) for item in whole.items.values())
    if not valid:
        return [("pass@1", "no valid trial" + _invalid(whole))]
    rate, count = whole.pass_rate, len(whole.items)
    families = f" in {whole.families} families" if whole.families > 1 else ""
    of = f"{_many(valid, 'valid trial')} of {_many(count, 'scenario')}{families}"
    found = [("pass@1", f"{show(rate.clipped())}, {of}{_invalid(whole)}")]
    if rate.defined:
        about = f"{rate.level:.0%}, {rate.method}, for {rate.question}"
        found.append(("interval", "; ".join([about, *rate.notes])))
    if len(whole.domains) > 1:
        found.append(("by domain", "; ".join(f"{name} {show(each.clipped())}" for name, each in whole.domains.items())))
    if whole.k > 1:
        found.append((f"pass^{whole.k}", show(whole.pass_hat.clipped())))
        found.append((f"pass@{whole.k}", show(whole.pass_any.clipped())))
    if whole.restricted_mean_s is not None:
        found.append(("time to mitigate", _time(whole, whole.restricted_mean_s)))
    return found


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _invalid(whole: Standing) -> str:
    count = sum(outcome == "invalid" for item in whole.items.values() for outcome in item.outcomes)
    if not count:
        return ""
    found = whole.bounds
    text = f"; {count} invalid"
    if found.low is not None and found.high is not None:
        text += f" (as failed {found.low:.3f}, bounds {found.low:.3f} to {found.high:.3f} of all trials)"
    return text + ("" if found.comparable else f", more than {MOST_INVALID:.0%}: not comparable")


def _time(whole: Standing, restricted: Estimate) -> str:
    by = ", ".join(f"{share:.0%} in {span / 60:g}" for span, share in whole.mitigated_by.items())
    text = show(restricted.clipped(0.0, LIMIT_S), "{:.0f} s".format)
    return f"{text}, restricted mean up to {LIMIT_S / 60:g} min; mitigated {by} min"
