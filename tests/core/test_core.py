"""Time, identifiers, plain data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.core.clock import EPOCH, from_unix, parse_rfc3339, rfc3339, shift_text, unix
from itbench.core.codec import dumps, loads
from itbench.core.ids import ALPHABET, Ids

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(PLAIN)
def test_plain_data_survives_encoding(value):
    assert loads(dumps(value)) == value


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4"])
def test_large_arrays_of_zeros_take_little_and_come_back_bit_for_bit(dtype, level):
    array = np.zeros((3, 50, 70), dtype=dtype)
    array[1, 2, 3], array[2, 49, 69], array[0, 0, 0] = -0.0, 7, -1
    if dtype.startswith("f"):
        array[0, 1, 0] = np.nan
    packed = dumps(array, level=level)
    back = loads(packed)
    assert back.tobytes() == array.tobytes() and back.shape == array.shape and back.dtype == array.dtype
    assert back.flags.writeable and len(packed) < array.nbytes / 10


@pytest.mark.parametrize("dtype", ["f8", "i4", "u1", "?"])
def test_arrays_survive_encoding_with_type_and_shape(dtype):
    array = np.arange(600).reshape(2, 300).astype(dtype)
    back = loads(dumps({"a": array}))["a"]
    assert back.dtype == array.dtype and np.array_equal(back, array) and back.flags.writeable


def test_anything_else_is_refused_by_name():
    with pytest.raises(TypeError, match="not plain data: set"):
        dumps({"a": {1}})


def test_damaged_bytes_are_a_value_error():
    with pytest.raises(ValueError, match="damaged"):
        loads(dumps([1, 2, 3])[:-3])


@given(st.integers(-(10**8), 10**9))
def test_world_seconds_and_their_text_are_inverse(second):
    assert parse_rfc3339(rfc3339(second)) == second
    assert from_unix(unix(second)) == pytest.approx(second)


def test_the_epoch_is_second_zero():
    assert rfc3339(0) == EPOCH.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_equal_seeds_draw_equal_names_per_key_whatever_else_is_drawn():
    one, two = Ids(7), Ids(7)
    two.uid("Node")
    assert one.uid("Pod", "shop") == two.uid("Pod", "shop")
    assert one.suffix("Pod") == two.suffix("Pod") and set(one.suffix("x")) <= set(ALPHABET)
    assert Ids(8).uid("Pod", "shop") != Ids(7).uid("Pod", "shop")


def test_a_restored_source_goes_on_where_it_was():
    ids = Ids(1)
    ids.uid("Pod")
    again = Ids.load(ids.save())
    assert again.uid("Pod") == ids.uid("Pod")


@given(st.floats(0, 1e7), st.integers(0, 10**8))
def test_times_in_a_line_move_to_the_clients_calendar(second, ahead_s):
    """Whatever form an app gives its times, they move with the timestamps of objects; fractions stay."""
    second = round(second, 3)
    for line in ('{"time":"%s","n":12}', "[%s] INFO"):
        assert shift_text(line % rfc3339(second, micro=True), ahead_s) == line % rfc3339(second + ahead_s, micro=True)
    before, after = f"{unix(second):.6f}", f"{unix(second) + ahead_s:.6f}"
    assert shift_text(f'"time":{before},', ahead_s) == f'"time":{after},'
    whole = int(unix(second))
    assert shift_text(f"t={whole}000 ", ahead_s) == f"t={whole + ahead_s}000 "


@pytest.mark.parametrize(
    "text", ["expires 2031-01-01T00:00:00Z", "order 1234567890123456789", "id a1768205855", "13:00"]
)
def test_numbers_and_dates_that_are_no_times_of_the_world_stay(text):
    """Only what can be a time of this estate is a time."""
    assert shift_text(text, 3600) == text
