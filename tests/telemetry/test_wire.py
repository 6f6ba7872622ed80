"""Numbers and times are printed as Prometheus prints them."""

from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.telemetry.promql import format_float
from itbench.telemetry.wire import format_floats, format_times


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (-0.0, "-0"), (1.0, "1"), (0.1, "0.1"), (1e20, "100000000000000000000"), (1e21, "1e+21"),
        (1.5e300, "1.5e+300"), (0.000001, "0.000001"), (0.0000001, "1e-07"), (123456789.125, "123456789.125"),
        (nan, "NaN"), (inf, "+Inf"), (-inf, "-Inf"),
    ],
)  # fmt: skip
def test_numbers_are_printed_as_go_prints_them(value: float, text: str) -> None:
    assert format_float(value) == text


@given(st.lists(st.floats(), max_size=20))
def test_many_numbers_are_printed_like_one_and_read_back_as_they_were(values: list[float]) -> None:
    texts = format_floats(np.array(values))
    assert texts == [format_float(value) for value in values]
    assert np.array_equal(np.array([float(text) for text in texts]), np.array(values), equal_nan=True)


def test_times_have_three_decimals_or_none() -> None:
    assert format_times(np.array([0.0, 1.5, 2.0004, 3.007]), 1000.0) == ["1000", "1001.500", "1002", "1003.007"]
