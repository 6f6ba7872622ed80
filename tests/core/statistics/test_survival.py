"""Times with a limit: never those who made it alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.core.statistics.clusters import mean
from itbench.core.statistics.survival import (
    Time,
    at_risk_to,
    kaplan_meier,
    log_rank,
    par2,
    restricted_mean,
    restricted_mean_se,
    scenario_restricted_means,
)

TAU = 600.0
seconds = st.lists(st.one_of(st.none(), st.floats(0, 900)), min_size=1, max_size=12)
mixed = st.lists(st.builds(Time, st.floats(0, 600), st.booleans()), min_size=1, max_size=12)


def test_the_worked_example_censored_at_the_limit_comes_out():
    times = at_risk_to(TAU, [60, 120, 120, 300, None, None, None, None])
    curve = kaplan_meier(times)
    assert (curve.times, curve.survival) == ((60, 120, 300), pytest.approx((0.875, 0.625, 0.5)))
    assert curve.median() == 300 and (curve.n, curve.events) == (8, 4)
    assert restricted_mean(times, TAU) == pytest.approx(375) and par2(times, TAU) == pytest.approx(675)
    assert restricted_mean(times, TAU) != pytest.approx(150)


def test_the_worked_example_with_earlier_censoring_comes_out():
    times = [Time(60), Time(90, False), Time(120), Time(300), Time(600, False)]
    curve = kaplan_meier(times)
    assert curve.survival == pytest.approx((0.8, 0.533333, 0.266667), abs=1e-6)
    assert curve.restricted_mean(TAU) == pytest.approx(284)
    assert curve.incidence(200) == pytest.approx(1 - 0.533333, abs=1e-6)


@given(mixed)
def test_a_curve_falls_from_one_and_the_restricted_mean_stays_within_the_limit(times):
    curve = kaplan_meier(times)
    assert curve.at(-1) == 1 and all(one >= two >= 0 for one, two in zip((1.0, *curve.survival), curve.survival))
    assert -1e-9 <= curve.restricted_mean(TAU) <= TAU + 1e-9
    assert restricted_mean_se(times, TAU) >= 0


@given(st.lists(st.floats(0, 599), min_size=1, max_size=12))
def test_without_censoring_the_curve_is_the_empirical_one_and_the_mean_plain(seconds):
    curve = kaplan_meier([Time(each) for each in seconds])
    for moment in seconds:
        assert curve.at(moment) == pytest.approx(sum(each > moment for each in seconds) / len(seconds), abs=1e-9)
    assert curve.restricted_mean(TAU) == pytest.approx(mean(seconds), abs=1e-6)


@given(seconds)
def test_censored_only_at_the_limit_the_restricted_mean_is_that_of_the_cut_times(found):
    cut = [TAU if each is None else min(each, TAU) for each in found]
    assert restricted_mean(at_risk_to(TAU, found), TAU) == pytest.approx(mean(cut), abs=1e-6)


@given(seconds, st.data())
def test_a_later_event_or_none_never_lowers_the_restricted_mean(found, data):
    index = data.draw(st.integers(0, len(found) - 1))
    before = restricted_mean(at_risk_to(TAU, found), TAU)
    later = list(found)
    later[index] = None if found[index] is None else found[index] + data.draw(st.floats(0, 500))
    never = [None if i == index else each for i, each in enumerate(found)]
    for changed in (later, never):
        assert restricted_mean(at_risk_to(TAU, changed), TAU) >= before - 1e-9


def test_nobody_in_time_gives_the_limit_and_no_median():
    times = at_risk_to(TAU, [None, 700.0])
    assert restricted_mean(times, TAU) == TAU and kaplan_meier(times).median() is None
    assert par2(times, TAU) == 2 * TAU


@pytest.mark.parametrize("bad", [-1.0, float("inf"), float("nan")])
def test_a_time_that_is_none_is_refused(bad):
    with pytest.raises(ValueError, match="finite number"):
        Time(bad)


def test_a_curve_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        kaplan_meier([])


def test_the_error_of_a_restricted_mean_is_that_of_a_mean_without_censoring():
    seconds = [10.0, 20.0, 40.0, 70.0]
    centre = mean(seconds)
    plain = sum((each - centre) ** 2 for each in seconds) ** 0.5 / len(seconds)
    assert restricted_mean_se([Time(each) for each in seconds], TAU) == pytest.approx(plain)


def test_the_log_rank_test_gives_a_known_value_and_sees_nothing_in_equal_times():
    # Freireich et al. 1963, remission of leukaemia: 6-MP against placebo, chi squared 16.79.
    drug = [Time(t, e) for t, e in zip(
        [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35],
        [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0])]  # fmt: skip
    placebo = [Time(t) for t in [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]]
    found = log_rank({"x": drug}, {"x": placebo})
    assert found.statistic == pytest.approx(16.79, abs=0.01) and found.p < 1e-4
    assert log_rank({"x": placebo}, {"x": placebo}).p == pytest.approx(1)
    assert log_rank({"x": drug}, {"y": placebo}).p == 1


def test_each_scenario_has_a_restricted_mean_of_its_own():
    assert scenario_restricted_means({"a": at_risk_to(TAU, [100.0, None]), "b": []}, TAU) == {"a": 350}
