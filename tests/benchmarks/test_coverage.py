"""The intervals hold the truth as often as they say, and the usual error bar does not."""

import pytest

from benchmarks.coverage import CELLS, simulate

FOUND = {}


def found(index):
    """Coverage of the methods in one row, simulated once."""
    if index not in FOUND:
        FOUND[index] = simulate(CELLS[index], 2000)
    return FOUND[index]


@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(CELLS)))
def test_the_default_interval_holds_the_truth_in_95_of_100_runs(index):
    assert 0.93 <= found(index)["t clustered"][0] <= 0.965


@pytest.mark.slow
@pytest.mark.parametrize("index", range(1, 5))
def test_trials_taken_as_independent_hold_the_truth_in_less_than_75_of_100_runs(index):
    assert found(index)["pooled Wald"][0] < 0.75 and found(index)["pooled Wilson"][0] < 0.75


def test_the_default_is_wider_than_what_takes_trials_as_independent():
    few = simulate(CELLS[2], 100)
    assert few["t clustered"][1] > 2 * few["pooled Wald"][1]
