"""pass@k and pass^k: unbiased, bounded, monotone."""

from itertools import combinations
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.core.statistics.repeats import over_scenarios, pass_at_k, pass_hat_k

COUNTS = {str(i): (4, c) for i, c in enumerate([4, 3, 0, 1, 2, 4])}
OWN = {name: name for name in COUNTS}


@pytest.mark.parametrize(
    ("kind", "k", "value"),
    [("pass@", 2, 0.722222), ("pass@", 4, 0.833333), ("pass^", 2, 0.444444), ("pass^", 4, 0.333333)],
)
def test_the_worked_example_comes_out_and_not_the_plug_in(kind, k, value):
    found = over_scenarios(kind, COUNTS, k, OWN)
    assert found.value == pytest.approx(value, abs=1e-6) and found.defined
    plug_in = {"pass^": 0.397135, "pass@": 0.769531}[kind]
    assert k != 4 or abs(found.value - plug_in) > 0.01


@given(st.integers(1, 8), st.data())
def test_both_equal_the_average_over_all_choices_of_k_trials(n, data):
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    trials = [1] * c + [0] * (n - c)
    chosen = list(combinations(trials, k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(any(each) for each in chosen) / len(chosen))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(all(each) for each in chosen) / len(chosen))


@given(st.integers(1, 8), st.floats(0, 1), st.data())
def test_both_are_unbiased_for_every_chance_of_passing(n, p, data):
    k = data.draw(st.integers(1, n))
    weights = [comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
    at = sum(weight * pass_at_k(n, c, k) for c, weight in enumerate(weights))
    hat = sum(weight * pass_hat_k(n, c, k) for c, weight in enumerate(weights))
    assert (at, hat) == pytest.approx((1 - (1 - p) ** k, p**k), abs=1e-9)


@given(st.integers(1, 12), st.data())
def test_both_are_ordered_in_k_and_in_passes(n, data):
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    assert 0 <= pass_hat_k(n, c, k) <= c / n + 1e-12 and c / n - 1e-12 <= pass_at_k(n, c, k) <= 1
    if k < n:
        assert pass_at_k(n, c, k) <= pass_at_k(n, c, k + 1) and pass_hat_k(n, c, k) >= pass_hat_k(n, c, k + 1)
    if c < n:
        assert pass_at_k(n, c, k) <= pass_at_k(n, c + 1, k) and pass_hat_k(n, c, k) <= pass_hat_k(n, c + 1, k)
    assert pass_at_k(n, n, k) == pass_hat_k(n, n, k) == 1 and pass_at_k(n, 0, k) == pass_hat_k(n, 0, k) == 0


def test_fewer_trials_than_k_is_undefined_and_named():
    short = over_scenarios("pass^", {"a": (3, 3), "b": (2, 2)}, 3, {"a": "a", "b": "b"})
    assert short.value is None and short.undefined_reason == "fewer than 3 valid trials: b"
    with pytest.raises(ValueError, match="k=3"):
        pass_at_k(2, 1, 3)
