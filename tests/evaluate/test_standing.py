"""How an agent stands: what is averaged over what, and what is told of invalid trials."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.core.documents.result import Result
from itbench.evaluate.contest import adjusted, contest, verdict
from itbench.evaluate.items import items
from itbench.evaluate.standing import lines, mitigated_given, standing, standings


def result(scenario="sre-1", outcome="pass", trial=1, **more):
    base = {"scenario": scenario, "seed": 0, "trial": trial, "agent": "a", "outcome": outcome, "cause": "checks"}
    return Result.model_validate(base | {"domain": scenario.partition("-")[0]} | more)


def run(rows, **more):
    """Results of scenario -> letters P, F, I."""
    names = {"P": "pass", "F": "fail", "I": "invalid"}
    return [
        result(scenario, names[letter], number, **more)
        for scenario, letters in rows.items()
        for number, letter in enumerate(letters, start=1)
    ]


def test_scenarios_weigh_alike_however_many_trials_they_have():
    assert standing("a", run({"sre-1": "PPPPPPPP", "sre-2": "F"})).pass_rate.value == 0.5


def test_invalid_trials_are_left_out_of_the_headline_and_bounded():
    found = standing("a", run({"sre-1": "PPI", "sre-2": "FFI", "sre-3": "PIF"}))
    assert found.pass_rate.value == 0.5
    assert (found.bounds.as_failed, found.bounds.high) == (pytest.approx(3 / 9), pytest.approx(6 / 9))
    assert (
        "3 invalid (as failed 0.333, bounds 0.333 to 0.667 of all trials), more than 5%: not comparable"
        in lines(found)[0][1]
    )


def test_a_row_and_its_twin_pass_only_together():
    rows = {"ciso-40": "PPFI", "ciso-40@twin": "PFPP"}
    (item,) = items(run(rows)).values()
    assert item.outcomes == ("pass", "fail", "fail", "invalid")


def test_the_interval_is_clustered_by_family_and_names_its_number():
    rows = {f"sre-{i}": "PF" if i % 3 else "PP" for i in range(1, 9)}
    apart, together = standing("a", run(rows)), standing("a", run(rows, family="one"))
    assert apart.pass_rate.n_units == apart.families == 8 and "in 8 families" in dict(lines(apart))["pass@1"]
    assert together.pass_rate.value == apart.pass_rate.value and "one family" in together.pass_rate.undefined_reason


def test_domains_are_averaged_with_equal_weight():
    rows = {"sre-1": "P", "sre-2": "P", "sre-3": "F", "ciso-1": "F", "ciso-2": "F"}
    found = standing("a", run(rows))
    assert found.domains["sre"].value == pytest.approx(2 / 3) and found.pass_rate.value == pytest.approx(1 / 3)


def test_repeats_need_as_many_trials_of_every_scenario():
    found = standing("a", run({"sre-1": "PPF", "sre-2": "PPP"}))
    assert found.pass_hat.value == 0.5 and found.pass_any.value == 1
    short = standing("a", run({"sre-1": "PPF", "sre-2": "PP"}))
    assert short.pass_hat.value is None and "sre-2" in short.pass_hat.undefined_reason


def test_times_are_restricted_and_never_of_those_who_made_it_alone():
    rows = [result(f"sre-{i}", "pass", metrics={"time_to_mitigate_s": 60.0 * i}) for i in (1, 2)]
    rows.append(result("sre-3", "fail", metrics={"time_to_mitigate_s": None}))
    found = standing("a", rows)
    assert found.restricted_mean_s.value == pytest.approx((60 + 120 + 1800) / 3)
    assert found.mitigated_by == {
        300.0: pytest.approx(2 / 3),
        600.0: pytest.approx(2 / 3),
        1800.0: pytest.approx(2 / 3),
    }


def test_mitigation_is_told_apart_by_the_diagnosis():
    answers = [(True, True), (True, False), (False, True)]
    rows = [result(f"sre-{i}", "fail", answers={"diagnosis": d, "mitigation": m}) for i, (d, m) in enumerate(answers)]
    assert mitigated_given(standing("a", rows)) == (0.5, 1.0)


def test_agents_are_told_apart_and_nothing_valid_is_said():
    found = standings([result(agent="a"), result(agent="b", outcome="invalid")])
    assert [each.agent for each in found] == ["a", "b"]
    assert lines(found[1])[0][1].startswith("no valid trial; 1 invalid")


def test_seeds_are_items_of_their_own_in_one_family():
    found = standing("a", [result(seed=seed) for seed in (0, 1)])
    assert list(found.items) == ["sre-1 seed 0", "sre-1 seed 1"] and found.families == 1


letters = st.text("PFI", min_size=1, max_size=4)
suites = st.dictionaries(st.integers(1, 9).map(lambda i: f"sre-{i}"), letters, min_size=1)


@given(suites, suites)
def test_a_contest_is_mirrored_when_the_agents_swap(one, two):
    a, b = standing("a", run(one)), standing("b", run(two))
    there, back = contest(a, b), contest(b, a)
    assert there.p_adjusted == back.p_adjusted and set(there.outcome.record.wins) == set(back.outcome.record.losses)
    assert set(there.only_a) == set(back.only_b) and there.families == back.families
    if there.outcome.difference.value is not None:
        assert there.outcome.difference.value == pytest.approx(-back.outcome.difference.value)
    assert verdict(there).endswith((".", ")."))


@given(suites)
def test_a_standing_writes_plain_data_and_bounds_its_rate(one):
    found = standing("a", run(one))
    data = found.as_json()
    assert data["scenarios"] == len(one)
    if found.bounds.valid_only is not None:
        assert found.bounds.low <= found.bounds.valid_only <= found.bounds.high
        assert 0 <= found.pass_rate.value <= 1
    else:
        assert found.pass_rate.value is None


def test_a_set_of_contests_is_adjusted_together():
    a, b = (standing(n, run({f"sre-{i}": x for i in range(8)})) for n, x in (("a", "P"), ("b", "F")))
    one = contest(a, b)
    assert one.mcnemar_p == one.p_adjusted == 2 / 2**8
    assert [each.p_adjusted for each in adjusted([one, one])] == [4 / 2**8] * 2


def test_one_agent_against_itself_differs_nowhere():
    a = standing("a", run({f"sre-{i}": "PF" for i in range(7)}))
    found = contest(a, a)
    assert found.outcome.difference.value == 0 and found.p_adjusted == 1 and "No scenario tells" in verdict(found)
