"""Generated bills: what a cause cost is the bill with it less the bill without it; equal seeds give equal bills."""

import datetime
import sqlite3
from pathlib import Path

import pytest

from itbench.cloud.anomalies import generate
from itbench.cloud.answers import variants
from itbench.cloud.estate import read_estate
from itbench.cloud.focus import COLUMNS, write
from itbench.cloud.prices import pricebook
from itbench.library.store import Library

TODAY = datetime.date(2026, 3, 31)


def bill(seed=0, variant="row"):
    spec = read_estate(Library().folder("estates", "shop-bill", "estate"), seed=seed).bill
    assert spec is not None
    return generate(spec, pricebook(), today=TODAY, seed=seed, variant=variant), spec


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_impacts_are_the_difference_between_row_and_twin(seed):
    row, twin = bill(seed)[0], bill(seed, "twin")[0]
    difference = sum(charge.billed for charge in row.charges) - sum(charge.billed for charge in twin.charges)
    assert sum(cause.usd for cause in row.causes) == pytest.approx(difference, abs=0.01)
    assert twin.causes == []


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_before_the_first_cause_row_and_twin_are_the_same(seed):
    row, twin = bill(seed)[0], bill(seed, "twin")[0]
    begin = min(cause.start for cause in row.causes)
    assert [c for c in row.charges if c.day < begin] == [c for c in twin.charges if c.day < begin]


@pytest.mark.parametrize("seed", range(12))
def test_causes_lie_on_different_families_and_applications_and_away_from_planned_changes(seed):
    (made, spec) = bill(seed)
    families = [cause.family for cause in made.causes]
    assert len(set(families)) == len(families) == len(spec.causes)
    planned = {plan.application for plan in spec.planned}
    assert not planned & {cause.application for cause in made.causes}
    assert all(cause.usd >= 50 for cause in made.causes)


def test_equal_seeds_give_equal_bills_and_other_seeds_others():
    assert bill(3)[0] == bill(3)[0]
    assert bill(3)[0].causes != bill(4)[0].causes


def test_the_database_holds_every_charge_and_cannot_be_written(tmp_path: Path):
    made, _ = bill()
    write(tmp_path / "bill.sqlite", made.charges)
    connection = sqlite3.connect(f"file:{tmp_path}/bill.sqlite?mode=ro", uri=True)
    try:
        count, billed = connection.execute("SELECT count(*), sum(BilledCost) FROM focus").fetchone()
        lite = connection.execute(
            "SELECT sum(unblended_cost), sum(price_per_hour * num_instances * 24) FROM instance_costs"
        )
        unblended, product = lite.fetchone()
        names = [column[1] for column in connection.execute("PRAGMA table_info(focus)")]
    finally:
        connection.close()
    assert (count, names) == (len(made.charges), [name for name, _ in COLUMNS])
    assert billed == pytest.approx(sum(charge.billed for charge in made.charges))
    assert unblended == pytest.approx(billed) == pytest.approx(product, rel=1e-6)


def test_wrong_answers_for_decoys_differ_from_the_truth():
    made, spec = bill()
    answers = variants(made, spec)
    for name in ("first", "wrong-impact", "everything", "seasonal", "none"):
        assert answers[name] != answers["causes"], name
    assert sorted(item["family"] for item in answers["rounded"]) == sorted(item["family"] for item in answers["causes"])
