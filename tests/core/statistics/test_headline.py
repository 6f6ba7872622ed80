"""The headline, its errors and its interval: worked examples and properties."""

from math import inf, isnan, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.core.statistics.clusters import clustered_se, families, fixed_suite_se, mean, residual_sums, scenario_se
from itbench.core.statistics.estimate import show
from itbench.core.statistics.headline import clustered_mean, fixed_suite, plain_mean, scenario_means
from itbench.core.statistics.proportions import clopper_pearson, jeffreys, one_sided_bound, wilson
from itbench.core.statistics.quantiles import (
    beta_cdf,
    beta_quantile,
    binomial_cdf,
    chi_squared_tail,
    normal_quantile,
    t_cdf,
    t_quantile,
)

A = {"1": [1, 1, 1, 1], "2": [1, 1, 1, 0], "3": [0] * 4, "4": [1, 0, 0, 0], "5": [1, 1, 0, 0], "6": [1] * 4}
FAMILIES = dict(zip("123456", "aabbcc"))

scores = st.lists(st.floats(0, 1), min_size=1, max_size=5)
suites = st.dictionaries(st.integers(0, 30), st.tuples(scores, st.sampled_from("abcdefg")), min_size=1, max_size=12)


def split(suite):
    """(trials, families) of a drawn suite."""
    return {name: each[0] for name, each in suite.items()}, {name: each[1] for name, each in suite.items()}


def test_the_worked_example_comes_out():
    means = scenario_means(A)
    assert mean(list(means.values())) == pytest.approx(0.583333, abs=1e-6)
    plain = plain_mean(list(means.values()))
    assert (plain.se, plain.low, plain.high) == pytest.approx((0.166667, 0.154903, 1.011764), abs=1e-6)
    clustered = clustered_mean(means, FAMILIES)
    assert (clustered.se, clustered.low, clustered.high) == pytest.approx((0.231990, -0.414840, 1.581507), abs=1e-6)
    assert (clustered.df, clustered.n_units, clustered.method) == (2, 3, "clustered t")
    assert any("few families" in note for note in clustered.notes)
    same = fixed_suite(A)
    assert same.se == pytest.approx(0.076073, abs=1e-6) and same.question != clustered.question


@pytest.mark.parametrize(
    ("df", "t"),
    [
        (1, 12.7062),
        (2, 4.30265),
        (3, 3.18245),
        (5, 2.57058),
        (7, 2.36462),
        (9, 2.26216),
        (19, 2.09302),
        (39, 2.02269),
        (99, 1.98422),
        (inf, 1.959964),
    ],
)
def test_quantiles_of_student_t_are_those_of_the_tables(df, t):
    assert t_quantile(0.975, df) == pytest.approx(t, abs=6e-5)
    assert t_quantile(0.025, df) == pytest.approx(-t_quantile(0.975, df))


@given(st.floats(0.001, 0.999), st.floats(0.3, 60), st.floats(0.3, 60))
def test_quantile_and_distribution_of_beta_are_inverse(p, a, b):
    assert beta_cdf(beta_quantile(p, a, b), a, b) == pytest.approx(p, abs=1e-8)


@given(st.floats(-30, 30), st.floats(0.5, 200))
def test_the_distribution_of_t_is_symmetric(t, df):
    assert t_cdf(t, df) + t_cdf(-t, df) == pytest.approx(1, abs=1e-12)


def test_distributions_agree_with_closed_forms():
    assert t_cdf(1.0, 1) == pytest.approx(0.75, abs=1e-12)
    assert normal_quantile(0.8) == pytest.approx(0.841621, abs=1e-6)
    assert binomial_cdf(3, 10, 0.3) == pytest.approx(0.6496107184, abs=1e-9)
    assert [chi_squared_tail(3.841458820694124, 1), chi_squared_tail(5.991464547107979, 2)] == pytest.approx([0.05] * 2)
    assert chi_squared_tail(7.814727903251179, 3) == pytest.approx(0.05, abs=1e-9)


@pytest.mark.parametrize("bad", [0.0, 1.0, -1.0, 2.0])
def test_a_quantile_of_no_probability_is_refused(bad):
    with pytest.raises(ValueError, match="strictly between"):
        t_quantile(bad, 3)


@given(suites)
def test_the_headline_lies_within_the_scenario_means_and_is_invariant_to_order(suite):
    trials, family = split(suite)
    means = scenario_means(trials)
    found = clustered_mean(means, family)
    assert min(means.values()) - 1e-12 <= found.value <= max(means.values()) + 1e-12
    backward = {name: list(reversed(trials[name])) for name in reversed(list(trials))}
    again = clustered_mean(scenario_means(backward), family)
    assert again.value == pytest.approx(found.value) and again.undefined_reason == found.undefined_reason
    assert again.low == pytest.approx(found.low) if found.low is not None else again.low is None


@given(suites, st.integers(2, 4))
def test_trials_that_are_repeated_change_nothing_and_uneven_numbers_reweight_nothing(suite, times):
    trials, family = split(suite)
    first = next(iter(trials))
    longer = trials | {first: trials[first] * times}
    one, two = (clustered_mean(scenario_means(each), family) for each in (trials, longer))
    assert two.value == pytest.approx(one.value, abs=1e-12)


@given(suites)
def test_with_every_scenario_its_own_family_the_clustered_error_is_that_over_scenarios(suite):
    trials, _ = split(suite)
    means = scenario_means(trials)
    own = {name: str(name) for name in means}
    clustered, plain = clustered_se(means, own), scenario_se(list(means.values()))
    assert clustered == pytest.approx(plain, abs=1e-12) if plain is not None else clustered is None


@given(suites, st.floats(-3, 3), st.floats(-3, 3))
def test_the_clustered_error_ignores_names_and_shifts_and_scales_with_the_data(suite, shift, factor):
    trials, family = split(suite)
    means = scenario_means(trials)
    se = clustered_se(means, family)
    renamed = {name: f"x{label}" for name, label in family.items()}
    moved = clustered_se({name: factor * value + shift for name, value in means.items()}, renamed)
    assert moved == pytest.approx(abs(factor) * se, abs=1e-9) if se is not None else moved is None


@given(suites)
def test_merging_families_that_lean_the_same_way_never_lowers_the_error(suite):
    trials, family = split(suite)
    means = scenario_means(trials)
    names, sums = list(families(list(means), family)), residual_sums(means, family)
    for one in range(len(names)):
        for two in range(one + 1, len(names)):
            if sums[one] * sums[two] > 0:
                merged = {name: names[one] if label == names[two] else label for name, label in family.items()}
                after = residual_sums(means, merged)
                assert sum(each * each for each in after) >= sum(each * each for each in sums) - 1e-12


def test_a_scenario_without_family_is_an_error_not_a_common_cluster():
    with pytest.raises(KeyError, match="no family given for 'b'"):
        clustered_mean({"a": 0.0, "b": 1.0}, {"a": "x"})


@given(suites, st.floats(0.5, 0.98), st.floats(0.001, 0.0199))
def test_the_interval_holds_its_value_and_grows_with_its_level(suite, level, more):
    trials, family = split(suite)
    narrow, wide = (clustered_mean(scenario_means(trials), family, each) for each in (level, level + more))
    if narrow.defined:
        assert narrow.low - 1e-12 <= narrow.value <= narrow.high + 1e-12
        assert wide.low <= narrow.low + 1e-12 and narrow.high <= wide.high + 1e-12
    for end in (narrow.value, narrow.low, narrow.high, narrow.se):
        assert end is None or not isnan(end)


def test_one_family_has_no_interval_and_none_is_no_value():
    alone = clustered_mean({"a": 0.5, "b": 1.0}, {"a": "x", "b": "x"})
    assert (alone.value, alone.low, alone.defined) == (0.75, None, False) and "one family" in alone.undefined_reason
    nothing = clustered_mean({}, {})
    assert nothing.value is None and "no valid trial" in show(nothing)


@pytest.mark.parametrize(("n", "bound"), [(10, 0.2589), (20, 0.1391), (40, 0.0722), (100, 0.0295)])
def test_all_pass_or_all_fail_gives_a_one_sided_bound_never_zero_width(n, bound):
    own = {str(i): str(i) for i in range(n)}
    assert one_sided_bound(n) == pytest.approx(bound, abs=5e-5)
    passed, failed = (clustered_mean(dict.fromkeys(own, value), own) for value in (1.0, 0.0))
    assert (passed.low, passed.high) == pytest.approx((1 - bound, 1), abs=5e-5)
    assert (failed.low, failed.high) == pytest.approx((0, bound), abs=5e-5)


def test_families_that_balance_exactly_give_no_zero_width():
    balanced = clustered_mean({"a": 0.0, "b": 1.0, "c": 0.0, "d": 1.0}, dict(zip("abcd", "xxyy")))
    assert balanced.high - balanced.low > 0.5 and any("balance" in note for note in balanced.notes)


def test_another_run_of_the_same_scenarios_needs_two_trials_each():
    assert "two valid trials" in fixed_suite({"a": [1.0], "b": [0.0, 1.0]}).undefined_reason
    assert fixed_suite_se({"a": [0.0, 1.0]}) == pytest.approx(sqrt(0.25))


@pytest.mark.parametrize(
    ("passes", "n", "low", "high"),
    [
        (9, 13, 0.4237, 0.8732),
        (9, 18, 0.2903, 0.7097),
        (0, 10, 0, 0.2775),
        (10, 10, 0.7225, 1),
        (3, 21, 0.0498, 0.3464),
    ],
)
def test_wilson_gives_the_published_intervals(passes, n, low, high):
    found = wilson(passes, n)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


def test_jeffreys_and_the_exact_interval_give_known_values():
    found = jeffreys(9, 13)
    assert (found.low, found.high) == pytest.approx((0.4230, 0.8861), abs=5e-5)
    exact = clopper_pearson(0, 10)
    assert (exact.low, exact.high) == pytest.approx((0, 0.30850), abs=5e-5)


@given(st.integers(0, 40), st.integers(0, 40), st.sampled_from([wilson, jeffreys, clopper_pearson]))
def test_every_interval_of_a_proportion_holds_it_and_mirrors(passes, fails, method):
    n = passes + fails
    found, mirrored = method(passes, n), method(fails, n)
    if n == 0:
        assert not found.defined
        return
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert (found.low, found.high) == pytest.approx((1 - mirrored.high, 1 - mirrored.low), abs=1e-9)


def test_an_impossible_count_is_refused():
    with pytest.raises(ValueError, match="5 of 3"):
        wilson(5, 3)
    with pytest.raises(ValueError, match="at least one unit"):
        one_sided_bound(0)
