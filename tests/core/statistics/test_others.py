"""Bounds, detection, costs, bootstrap, adjustments, judges, early looks."""

import random
from decimal import Decimal
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.core.statistics.adjust import DOMAIN_WEIGHTS, control_variate, macro_average
from itbench.core.statistics.bootstrap import cluster_bootstrap, ratio_of_sums
from itbench.core.statistics.costs import Cost, Offer, pareto_front, per_success, total
from itbench.core.statistics.detection import Table, balanced_accuracy, matthews, sensitivity, specificity
from itbench.core.statistics.estimate import Estimate, show
from itbench.core.statistics.headline import plain_mean
from itbench.core.statistics.invalid import bounds
from itbench.core.statistics.judges import corrected_rate, krippendorff_alpha, prediction_powered, rogan_gladen
from itbench.core.statistics.sequential import confidence_sequence, spent_alpha

counts = st.integers(0, 30)


def test_the_worked_bounds_come_out():
    found = bounds(10, 6, 4)
    assert (found.valid_only, found.as_failed, found.low, found.high) == (0.625, 0.5, 0.5, 0.7)
    assert found.invalid_share == 0.2 and not found.comparable


@given(counts, counts, counts)
def test_bounds_are_ordered_and_collapse_without_invalid_trials(passes, fails, invalid):
    found = bounds(passes, fails, invalid)
    if not passes + fails + invalid:
        assert found.valid_only is found.high is None
        return
    if found.valid_only is not None:
        assert found.low == found.as_failed <= found.valid_only + 1e-12 <= found.high + 2e-12
    if not invalid:
        assert found.as_failed == found.valid_only == found.high and found.comparable


def test_the_ways_of_treating_invalid_trials_are_biased_as_published():
    """Trouble is likelier on hard scenarios: dropping flatters, counting as failed punishes, the bounds hold the truth."""
    generator, cells = random.Random(11), [0, 0, 0]
    for _ in range(20_000):
        p = generator.betavariate(0.6, 0.6)
        lost = generator.random() < (0.22 if p < 0.5 else 0.06)
        cells[2 if lost else 0 if generator.random() < p else 1] += 1
    found = bounds(*cells)
    assert found.valid_only > 0.52 and found.as_failed < 0.47 and found.low < 0.5 < found.high


def test_the_worked_table_of_detection_comes_out():
    table = Table(tp=8, fp=2, fn=1, tn=9)
    found = [sensitivity(table), specificity(table), balanced_accuracy(table), matthews(table)]
    assert found == pytest.approx([0.8889, 0.8182, 0.8535, 0.7035], abs=5e-5)


@given(counts, counts)
def test_a_constant_answer_detects_nothing(positives, negatives):
    always = Table(tp=positives, fp=negatives, fn=0, tn=0)
    assert balanced_accuracy(always) in (0.5, None) and matthews(always) is None


@given(counts, counts, counts, counts)
def test_correlation_is_within_its_range_and_changes_sign_with_the_answers(tp, fp, fn, tn):
    one, two = matthews(Table(tp, fp, fn, tn)), matthews(Table(fn, tn, tp, fp))
    assert one is None or (-1 - 1e-9 <= one <= 1 + 1e-9 and one == pytest.approx(-two, abs=1e-12))


amounts = st.one_of(st.none(), st.decimals(0, 1000, places=2))


@given(st.lists(amounts, max_size=10), st.lists(st.decimals(0, 1000, places=2), min_size=10, max_size=10))
def test_an_unknown_cost_makes_the_total_unknown_and_never_nothing(parts, prices):
    found = total(parts)
    completed = total([price if part is None else part for part, price in zip(parts, prices)])
    assert (found.total is None) == (None in parts) and found.known <= completed.total
    assert "?" in str(found) if None in parts else "?" not in str(found)
    assert (found + total([None])).total is None and 0 <= found.priced_fraction <= 1


def test_cost_per_success_is_a_ratio_of_sums_and_unknown_without_success():
    cost = total([Decimal("1.5"), Decimal("0.5")])
    assert per_success(cost, 4) == Decimal("0.5") and per_success(cost, 0) is None
    assert per_success(total([None]), 4) is None and str(total([Decimal(1), None])) == "? (at least $1.00, 50 % priced)".replace(" %", "%")  # noqa: E501 # fmt: skip
    assert Cost().priced_fraction == 1


def test_the_front_holds_what_nothing_beats():
    offers = [
        Offer("a", Decimal(1), 0.2),
        Offer("b", Decimal(2), 0.1),
        Offer("c", Decimal(3), 0.9),
        Offer("d", None, 1),
    ]
    assert [offer.name for offer in pareto_front(offers)] == ["a", "c"]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_every_offer_is_on_the_front_or_beaten(pairs):
    offers = [Offer(i, Decimal(cost), success) for i, (cost, success) in enumerate(pairs)]
    front = pareto_front(offers)
    for offer in offers:
        beaten = any(
            other.cost <= offer.cost and other.success >= offer.success
            and (other.cost, other.success) != (offer.cost, offer.success) for other in offers
        )  # fmt: skip
        assert beaten != (offer in front)


def test_a_cluster_bootstrap_covers_a_ratio():
    """Of 60 intervals for cost per success on 24 families, nearly all hold the truth."""
    generator, hits = random.Random(2), 0
    for run in range(60):
        units = {i: (generator.uniform(1, 3), float(generator.random() < 0.5)) for i in range(48)}
        found = cluster_bootstrap(units, {i: str(i // 2) for i in units}, ratio_of_sums, seed=run, draws=300)
        assert found.low <= found.value <= found.high
        hits += found.low <= 4 <= found.high
    assert 52 <= hits <= 60


def test_a_bootstrap_is_the_same_for_the_same_seed_and_undefined_where_it_must_be():
    units, own = {i: (float(i), 1.0) for i in range(8)}, {i: str(i) for i in range(8)}
    one, two = (cluster_bootstrap(units, own, ratio_of_sums, seed=4, draws=200) for _ in range(2))
    assert one == two and one.n_units == 8
    percentile = cluster_bootstrap(units, own, ratio_of_sums, method="percentile", draws=200)
    assert percentile.method == "cluster bootstrap, percentile"
    assert "one family" in cluster_bootstrap(units, dict.fromkeys(own, "x"), ratio_of_sums).undefined_reason
    assert cluster_bootstrap({1: (1.0, 0.0)}, {1: "a"}, ratio_of_sums).value is None
    same = cluster_bootstrap(
        dict.fromkeys(range(4), (1.0, 1.0)), {i: str(i) for i in range(4)}, ratio_of_sums, draws=50
    )
    assert not same.defined and same.value == 1


def test_domains_are_averaged_with_fixed_weights_whatever_their_size():
    parts = {"sre": plain_mean([0.0, 1.0, 1.0, 1.0]), "ciso": plain_mean([0.0, 0.5]), "finops": plain_mean([1.0, 0.5])}
    found = macro_average(parts, DOMAIN_WEIGHTS)
    assert found.value == pytest.approx((0.75 + 0.25 + 0.75) / 3) and found.low < found.value < found.high
    assert found.se == pytest.approx(sqrt(sum((part.se / 3) ** 2 for part in parts.values())))
    unknown = macro_average({"sre": parts["sre"], "ciso": plain_mean([])}, DOMAIN_WEIGHTS)
    assert unknown.value is None and "ciso" in unknown.undefined_reason
    with pytest.raises(KeyError):
        macro_average({"other": parts["sre"]}, DOMAIN_WEIGHTS)


def test_a_control_variate_narrows_the_spread_and_keeps_the_mean():
    generator, plain, moved = random.Random(7), [], []
    for _ in range(300):
        hard = [generator.random() for _ in range(30)]
        scores = [max(0.0, min(1.0, x + generator.gauss(0, 0.1))) for x in hard]
        plain.append(sum(scores) / 30)
        moved.append(control_variate(scores, hard, 0.5))
    spread = [sum((each - 0.5) ** 2 for each in values) / 300 for values in (plain, moved)]
    assert spread[1] < spread[0] / 3 and sum(moved) / 300 == pytest.approx(0.5, abs=0.01)
    assert control_variate([0.0, 1.0], [0.5, 0.5], 0.2) == 0.5


def test_a_judge_is_corrected_for_its_errors_and_refused_when_worthless():
    assert rogan_gladen(0.6, 0.9, 0.8) == pytest.approx(0.571429, abs=1e-6)
    assert rogan_gladen(0.1, 0.9, 0.8) == pytest.approx(-0.142857, abs=1e-6)
    assert rogan_gladen(0.37, 1, 1) == pytest.approx(0.37)
    with pytest.raises(ValueError, match="> 1"):
        rogan_gladen(0.5, 0.5, 0.5)
    assert "uninformative" in corrected_rate((10, 100), (90, 100), (80, 100)).undefined_reason
    found = corrected_rate((60, 100), (90, 100), (80, 100))
    assert found.value == pytest.approx(0.571429, abs=1e-6) and found.low < found.value < found.high
    wider = corrected_rate((60, 100), (9, 10), (8, 10))
    assert wider.high - wider.low > found.high - found.low


def test_prediction_powered_inference_moves_a_biased_judge_back():
    generator = random.Random(9)
    people = [float(generator.random() < 0.4) for _ in range(2000)]
    judge = [1.0 if generator.random() < 0.2 else each for each in people]
    found = prediction_powered(judge[400:], list(zip(people[:400], judge[:400])))
    assert sum(judge) / 2000 > 0.48 and found.value == pytest.approx(0.4, abs=0.04)
    assert not prediction_powered([1.0], []).defined


def test_agreement_is_one_when_all_agree_and_near_zero_by_chance():
    assert krippendorff_alpha([["a", "a"], ["b", "b"], ["a", "a", None]]) == pytest.approx(1)
    generator = random.Random(1)
    assert abs(krippendorff_alpha([[generator.choice("ab") for _ in range(2)] for _ in range(2000)])) < 0.06
    assert krippendorff_alpha([["a", None]]) is None and krippendorff_alpha([["a", "a"]]) is None
    # Krippendorff 2011, the example of nominal data with four observers and twelve units: 0.743.
    rows = ["1 2 3 3 2 1 4 1 2 * * *", "1 2 3 3 2 2 4 1 2 5 * 3", "* 3 3 3 2 3 4 2 2 5 1 *", "1 2 3 3 2 4 4 1 2 5 1 *"]
    units = [[None if each == "*" else each for each in unit] for unit in zip(*(row.split() for row in rows))]
    assert krippendorff_alpha(units) == pytest.approx(0.743, abs=5e-4)


def test_a_confidence_sequence_holds_at_every_look():
    generator, missed = random.Random(6), 0
    for _ in range(200):
        hits = 0
        for n in range(1, 151):
            hits += generator.random() < 0.3
            found = confidence_sequence(hits / n, n)
            if not found.low <= 0.3 <= found.high:
                missed += 1
                break
    assert missed <= 10
    assert not confidence_sequence(0.5, 0).defined


def test_little_alpha_is_spent_early_and_all_of_it_at_the_end():
    assert spent_alpha(0) == 0 and spent_alpha(0.5) == pytest.approx(0.0056, abs=1e-4)
    assert spent_alpha(1) == pytest.approx(0.05) and spent_alpha(0.25) < spent_alpha(0.5)
    with pytest.raises(ValueError, match="fraction"):
        spent_alpha(1.5)


def test_an_estimate_shows_what_is_undefined_and_is_cut_for_display_only():
    raw = Estimate(0.9, 0.7, 1.1)
    assert show(raw.clipped()) == "0.900 [0.700, 1.000]" and raw.high == 1.1
    assert show(plain_mean([0.5])) == "0.500 [no interval: one scenario only]"
    assert raw.noted("x").as_json()["notes"] == ["x"]
