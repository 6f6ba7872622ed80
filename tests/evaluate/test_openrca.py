"""OpenRCA's published results come out of the partial-credit scorer, row by row."""

import csv
import os
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.evaluate.openrca import ASKED, COMPONENT, REASON, TIME, grade, matches, read_prediction

ARCHIVE = Path(os.environ.get("ITBENCH_DATA", "/nonexistent")) / "openrca-archive"
FILES = {
    "agent-Bank.csv": (136, 30.667),
    "agent-Telecom.csv": (51, 14.333),
    "agent-Market-cloudbed-1.csv": (70, 8.75),
    "agent-Market-cloudbed-2.csv": (78, 10.0),
}
A_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
needs_archive = pytest.mark.skipif(not ARCHIVE.is_dir(), reason="ITBENCH_DATA names no folder with openrca-archive")


def rows():
    """(file, row) of the whole archive."""
    for name in FILES:
        with (ARCHIVE / name).open(newline="") as file:
            for row in csv.DictReader(file):
                yield name, row


def truth_of(row):
    """The failure that a row belongs to, element by element."""
    return dict(line.split(": ", 1) for line in row["groundtruth"].splitlines() if ": " in line)


def kind(text, components):
    """Which element a text is; the archive's components are a closed list."""
    return TIME if A_TIME.fullmatch(text) else COMPONENT if text in components else REASON


def truths(row, components):
    """The failures that a row was scored against, asked elements only.

    The archive's truth holds one failure. Where there were two, the other's elements stand among the passed and failed ones;
    one that both have in common stands there once.
    """
    asked, first = ASKED[row["task_index"]], truth_of(row)
    rest = [line for line in (row["passed"] + "\n" + row["failed"]).splitlines() if line]
    for element in asked:
        rest.remove(first[element])
    if not rest:
        return asked, [first]
    other = {kind(text, components): text for text in rest}
    assert len(other) == len(rest)
    return asked, [first, {element: other.get(element, first[element]) for element in asked}]


@needs_archive
def test_all_335_scores_of_the_archive_are_reproduced_exactly():
    components = {truth_of(row)["component"] for _, row in rows()}
    exact, sums, counts = 0, Counter(), Counter()
    for name, row in rows():
        asked, true = truths(row, components)
        found = grade(read_prediction(row["prediction"]), true, asked)
        counts[name] += 1
        sums[name] += found.score
        same = found.score == float(row["score"])
        exact += same
        assert same, (name, row["row_id"], row["prediction"], true, found.score, row["score"])
    print(f"{exact} of {sum(counts.values())} scores reproduced exactly")
    assert exact == 335
    assert {name: (counts[name], pytest.approx(sums[name], abs=5e-4)) for name in FILES} == FILES


@needs_archive
def test_the_elements_met_and_missed_are_those_of_the_archive():
    components = {truth_of(row)["component"] for _, row in rows()}
    other = 0
    for _, row in rows():
        asked, true = truths(row, components)
        met, passed = set(grade(read_prediction(row["prediction"]), true, asked).met), row["passed"].splitlines()
        other += met != set(passed)
        assert len(met) == len(set(passed))
    # One answer names the time of one failure with the reason of the other: two matchings earn the same.
    assert other == 1


failures = st.lists(
    st.fixed_dictionaries(
        {COMPONENT: st.sampled_from("abc"), REASON: st.sampled_from("xyz"), TIME: st.just("2021-03-04 14:57:00")}
    ),
    min_size=1,
    max_size=4,
)


@given(failures, st.sampled_from(sorted(ASKED)), st.randoms(use_true_random=False))
def test_the_truth_itself_scores_one_in_any_order_and_another_number_nothing(true, task, random):
    shuffled = list(true)
    random.shuffle(shuffled)
    assert grade(shuffled, true, ASKED[task]).score == 1
    assert grade([*true, true[0]], true, ASKED[task]).score == 0 == grade([], true, ASKED[task]).score


@given(failures, failures, st.sampled_from(sorted(ASKED)))
def test_a_score_is_the_share_of_elements_met(predicted, true, task):
    found = grade(predicted, true, ASKED[task])
    assert found.score == len(found.met) / (len(found.met) + len(found.missed))


@pytest.mark.parametrize(
    ("given_", "right"), [("2021-03-04 14:58:00", True), ("2021-03-04 14:58:01", False), ("soon", False)]
)
def test_a_time_is_right_within_a_minute(given_, right):
    assert matches(TIME, given_, "2021-03-04 14:57:00") is right
    assert not matches(TIME, None, "2021-03-04 14:57:00")


@pytest.mark.parametrize("text", ["", "no idea", "{", "[1]", '{"1": 3}'])
def test_what_cannot_be_read_names_no_failure(text):
    assert read_prediction(text) == []


def test_an_answer_is_found_within_its_surroundings():
    text = 'Thus:\n```json\n{"1": {"root cause component": "a", "root cause reason": ""}}\n```'
    assert read_prediction(text) == [{COMPONENT: "a"}]
