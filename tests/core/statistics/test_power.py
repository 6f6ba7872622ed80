"""Power: the closed form, its inverse, the published table and the allocation of trials."""

import random
from math import inf, sqrt
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.core.statistics.clusters import mean
from itbench.core.statistics.power import (
    PAIRED,
    UNPAIRED,
    Design,
    Spread,
    best_trials,
    detectable,
    detectable_clustered,
    detectable_from_se,
    estimated_spread,
    intra_family,
    plan,
    scenarios_needed,
)
from itbench.core.statistics.quantiles import beta_quantile

variances = st.floats(0.001, 0.25)
spreads = st.builds(Spread, variances, variances, variances, st.floats(0, 1))
designs = st.builds(Design, st.integers(1, 10), st.integers(1, 10), st.floats(1, 6))


def test_the_worked_examples_come_out():
    spread = Spread(1 / 9, 1 / 6, 1 / 6)
    assert scenarios_needed(0.1, spread, Design(1, 1)) == pytest.approx(348.84, abs=0.01)
    assert scenarios_needed(0.1, spread, Design(4, 4)) == pytest.approx(152.62, abs=0.01)
    assert scenarios_needed(1, Spread(1, 0, 0), Design()) == pytest.approx(7.84888, abs=1e-5)
    assert best_trials(10, 1, 0.12, 0.13) == pytest.approx(3.04, abs=0.005)


@pytest.mark.parametrize(
    ("n", "spread", "points"),
    [(40, PAIRED, (25, 16, 13, 11)), (100, PAIRED, (16, 10, 8.5, 7)),
     (40, UNPAIRED, (31, 25, 24, 22)), (100, UNPAIRED, (20, 16, 15, 14))],
)  # fmt: skip
def test_the_published_table_of_detectable_differences_is_reproduced(n, spread, points):
    for k, expected in zip((1, 3, 5, 10), points):
        assert 100 * detectable(n, spread, Design(k, k)) == pytest.approx(expected, abs=1.5)


GRID = [beta_quantile((i + 0.5) / 500, 0.6, 0.6) for i in range(500)]
"""Quantiles of Beta(0.6, 0.6), looked up instead of computed thousands of times."""


def _chances(generator, scenarios):
    """Pass chances of two agents, Beta(0.6, 0.6) each, latent correlation 0.85."""
    found = []
    for _ in range(scenarios):
        common = generator.gauss(0, 1)
        latent = (sqrt(0.85) * common + sqrt(0.15) * generator.gauss(0, 1) for _ in range(2))
        found.append([GRID[int(NormalDist().cdf(z) * len(GRID))] for z in latent])
    return found


def test_simulated_suites_have_the_spread_that_the_table_rests_on():
    chances = _chances(random.Random(5), 3000)
    d = [a - b for a, b in chances]
    assert mean([(each - mean(d)) ** 2 for each in d]) == pytest.approx(PAIRED.between, abs=0.006)
    assert mean([a * (1 - a) for a, _ in chances]) == pytest.approx(PAIRED.within_a, abs=0.006)


@given(spreads, designs, st.floats(0.01, 0.9))
def test_scenarios_needed_and_difference_seen_are_inverse(spread, design, difference):
    assert detectable(scenarios_needed(difference, spread, design), spread, design) == pytest.approx(difference)


@given(spreads, designs, st.integers(12, 200))
def test_more_scenarios_and_more_trials_see_less_and_never_below_the_limit(spread, design, n):
    now = detectable(n, spread, design)
    assert detectable(n + 1, spread, design) < now
    richer = Design(design.trials_a + 1, design.trials_b, design.per_family)
    assert detectable(n, spread, richer) <= now
    limit = detectable(n, Spread(spread.between, 0, 0, spread.correlation), design)
    assert limit <= detectable(n, spread, richer) + 1e-12
    assert detectable_clustered(n, spread, design) >= now


@given(spreads, designs, st.floats(0.03, 0.9))
def test_a_plan_is_the_smallest_number_that_sees_the_difference(spread, design, difference):
    n = plan(difference, spread, design)
    assert detectable_clustered(n, spread, design) <= difference + 1e-12
    assert n >= 6 * design.per_family - 1e-9
    smaller = detectable_clustered(n - 1, spread, design)
    assert n - 1 < 6 * design.per_family or smaller is None or smaller > difference


def test_a_plan_beyond_all_means_is_none():
    assert plan(1e-6, PAIRED, Design(1, 1)) is None


@given(st.floats(0, 100), st.floats(0.1, 100), variances, variances)
def test_the_best_number_of_trials_is_at_least_one_and_rises_with_the_setup_cost(a, b, within, between):
    assert 1 <= best_trials(a, b, within, between) <= best_trials(a * 2 + 1, b, within, between)
    assert best_trials(a, b, within, 0) == inf


@pytest.mark.parametrize(
    "wrong",
    [lambda: scenarios_needed(0, PAIRED, Design()), lambda: detectable(0, PAIRED, Design()), lambda: Design(0, 1),
     lambda: Design(alpha=1), lambda: best_trials(1, 0, 0.1, 0.1)],
)  # fmt: skip
def test_impossible_designs_are_refused(wrong):
    with pytest.raises(ValueError, match=r"positive|at least|strictly"):
        wrong()


def test_the_difference_seen_by_a_comparison_follows_from_its_standard_error():
    assert detectable_from_se(0.1, inf) == pytest.approx(sqrt(7.84888) * 0.1, abs=1e-6)
    assert detectable_from_se(0.1, 5) > detectable_from_se(0.1, 50)


def test_an_estimated_spread_finds_what_was_put_in():
    generator, a, b = random.Random(3), {}, {}
    for name, (one, two) in enumerate(_chances(generator, 1500)):
        a[name], b[name] = ([float(generator.random() < p) for _ in range(4)] for p in (one, two))
    found = estimated_spread(a, b, {name: str(name) for name in a})
    assert (found.between, found.within_a, found.correlation) == pytest.approx((0.041, 0.1364, 0), abs=0.012)
    assert estimated_spread({1: [1.0]}, {1: [0.0]}, {1: "x"}) is None


def test_likeness_within_families_is_found_and_stays_in_range():
    alike = {i: float(i // 2 % 2) for i in range(12)}
    assert intra_family(alike, {i: str(i // 2) for i in alike}) == pytest.approx(1)
    assert intra_family(alike, {i: str(i) for i in alike}) == 0
    assert intra_family({i: float(i % 2) for i in range(12)}, {i: str(i // 2) for i in range(12)}) == 0
