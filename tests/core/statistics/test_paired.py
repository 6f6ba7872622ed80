"""Comparisons of two agents: tests, adjustments, equivalence, records."""

import random
from itertools import pairwise, product
from math import sqrt

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from itbench.core.statistics import paired
from itbench.core.statistics.multiplicity import benjamini_hochberg, holm
from itbench.core.statistics.paired import compare, differences, equivalence, mcnemar, no_worse, record, sign_flip

FAMILIES = dict(zip("123456", "aabbcc"))
A = dict(zip("123456", [1, 0.75, 0.5, 0.5, 1, 1]))
B = dict(zip("123456", [0.75, 0.75, 0, 0.25, 0.5, 1]))

quarters = st.sampled_from([0, 0.25, 0.5, 0.75, 1.0])
pairs = st.dictionaries(st.integers(0, 20), st.tuples(quarters, quarters, st.sampled_from("abcdefgh")), min_size=1)
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def split(drawn):
    """(A, B, families) of drawn pairs."""
    return tuple({name: each[i] for name, each in drawn.items()} for i in range(3))


def test_the_worked_example_comes_out():
    found = compare(A, B, FAMILIES)
    d = found.difference
    assert (d.value, d.se, d.low, d.high) == pytest.approx((0.25, 0.072169, -0.060517, 0.560517), abs=1e-6)
    assert d.df == 2 and (found.test.p, found.test.floor, found.test.exact) == (0.25, 0.25, True)
    assert tuple(map(len, (found.record.wins, found.record.ties, found.record.losses))) == (4, 2, 0)
    assert found.record.ties == ("2", "6")


@pytest.mark.parametrize(("b", "c", "p"), [(1, 6, 0.125), (0, 5, 0.0625), (3, 3, 1), (2, 9, 0.065430)])
def test_mcnemar_gives_the_exact_values(b, c, p):
    assert mcnemar(b, c) == pytest.approx(p, abs=1e-6) == mcnemar(c, b)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_symmetric_and_one_for_equal_counts(b, c):
    assert mcnemar(b, c) == mcnemar(c, b) and 0 < mcnemar(b, c) <= 1 and mcnemar(b, b) == 1


@given(pairs)
def test_swapping_the_agents_negates_the_difference_and_keeps_p(drawn):
    a, b, family = split(drawn)
    one, two = compare(a, b, family), compare(b, a, family)
    assert one.difference.value == -two.difference.value and one.test == two.test
    assert one.record.wins == two.record.losses and one.record.ties == two.record.ties
    if one.difference.defined:
        assert (one.difference.low, one.difference.high) == pytest.approx((-two.difference.high, -two.difference.low))


@given(pairs)
def test_equal_agents_differ_by_nothing(drawn):
    a, _, family = split(drawn)
    found = compare(a, a, family)
    assert found.difference.value == 0 and found.test.p == 1 and not found.record.wins and not found.record.losses


@given(pairs)
def test_scenarios_without_a_difference_in_a_new_family_never_lower_p(drawn):
    a, b, family = split(drawn)
    d = differences(a, b)
    more = sign_flip({**d, "new": 0.0}, {**family, "new": "new"})
    assert more.p >= sign_flip(d, family).p


@given(pairs)
def test_the_sign_flip_equals_full_enumeration_and_keeps_its_floor(drawn):
    a, b, family = split(drawn)
    d = differences(a, b)
    totals = {label: sum(d[name] for name in d if family[name] == label) for label in set(family.values())}
    observed = abs(sum(totals.values()))
    flips = [abs(sum(sign * each for sign, each in zip(signs, totals.values())))
             for signs in product((1, -1), repeat=len(totals))]  # fmt: skip
    p = sum(flip >= observed - 1e-9 for flip in flips) / len(flips)
    found = sign_flip(d, family)
    assert found.p == pytest.approx(p) and found.p >= found.floor - 1e-12 >= 2 / 2 ** len(totals) - 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_drawn_flips_agree_with_enumerated_ones(seed, monkeypatch):
    generator = random.Random(seed)
    d = {i: generator.gauss(0.25, 1) for i in range(12)}
    own = {i: str(i) for i in d}
    exact = sign_flip(d, own).p
    monkeypatch.setattr(paired, "EXACT_FAMILIES", 3)
    drawn = sign_flip(d, own, seed=seed)
    assert not drawn.exact and abs(drawn.p - exact) < 4 * sqrt(exact * (1 - exact) / paired.DRAWS) + 1e-4
    assert drawn == sign_flip({name: -value for name, value in reversed(d.items())}, own, seed=seed)


@pytest.mark.parametrize("count", [6, 8, 14, 20])
def test_the_sign_flip_keeps_its_error_rate(count):
    generator, hits, runs = random.Random(count), 0, 1000 if count < 14 else 250
    own = {i: str(i) for i in range(count)}
    for run in range(runs):
        hits += sign_flip({i: generator.gauss(0, 1) for i in own}, own, seed=run, draws=2000).p <= 0.05
    spare = 3 * sqrt(0.05 * 0.95 / runs)
    assert 0.02 - spare / 2 < hits / runs <= 0.05 + spare


def test_fewer_than_six_families_can_never_be_significant():
    d = dict.fromkeys(range(5), 1.0)
    assert sign_flip(d, {i: str(i) for i in d}).p == 0.0625
    assert 2.0 ** (1 - paired.LEAST_FAMILIES) < 0.05 < 2.0 ** (2 - paired.LEAST_FAMILIES)


def test_holm_and_the_false_discovery_rate_give_the_worked_values():
    raw = [0.01, 0.04, 0.03, 0.005]
    assert holm(raw) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert benjamini_hochberg(raw) == pytest.approx([0.02, 0.04, 0.04, 0.02])


@given(p_values)
def test_adjusted_p_values_are_never_lower_keep_their_order_and_holm_is_stricter(raw):
    strict, mild = holm(raw), benjamini_hochberg(raw)
    assert all(p <= m <= s + 1e-12 <= 1 + 1e-12 for p, m, s in zip(raw, mild, strict))
    order = sorted(range(len(raw)), key=lambda i: raw[i])
    for adjusted in (strict, mild):
        assert all(adjusted[i] <= adjusted[j] + 1e-12 for i, j in pairwise(order))
    assert holm(raw[:1]) == benjamini_hochberg(raw[:1]) == raw[:1]


def test_a_p_value_outside_its_range_is_refused():
    for adjust in (holm, benjamini_hochberg):
        with pytest.raises(ValueError, match="lies in"):
            adjust([0.5, 1.5])


@given(pairs, st.floats(0.01, 0.9), st.floats(0.01, 0.9))
def test_equivalence_is_symmetric_and_easier_with_a_wider_margin(drawn, margin, more):
    a, b, family = split(drawn)
    one, two = compare(a, b, family).difference, compare(b, a, family).difference
    assume(one.defined)
    assert equivalence(one, margin) == pytest.approx(equivalence(two, margin), abs=1e-9)
    assert equivalence(one, margin + more) <= equivalence(one, margin) + 1e-12


@given(pairs, st.floats(0.01, 0.9))
def test_equivalence_at_five_percent_is_the_ninety_percent_interval_inside_the_margin(drawn, margin):
    a, b, family = split(drawn)
    ninety = compare(a, b, family, level=0.9).difference
    assume(ninety.defined)
    inside = -margin < ninety.low and ninety.high < margin
    p = equivalence(ninety, margin)
    assert abs(p - 0.05) < 1e-9 or (p < 0.05) == inside
    assert no_worse(ninety, margin) == (ninety.low > -margin) or abs(ninety.low + margin) < 1e-9


def test_equivalence_without_an_interval_is_not_claimed():
    lone = compare({"a": 1.0}, {"a": 1.0}, {"a": "x"}).difference
    assert equivalence(lone, 0.1) is None and no_worse(lone, 0.1) is None
    with pytest.raises(ValueError, match="positive"):
        equivalence(lone, 0)


def test_a_record_counts_rounding_as_a_tie():
    assert record({"a": 0.1 + 0.2 - 0.3, "b": 0.5, "c": -0.5}) == paired.Record(("b",), ("a",), ("c",))
