"""`itbench compare` and `itbench plan`, on runs made by hand."""

import json

import pytest

from itbench.cli.main import main
from itbench.core.documents.result import Result, RunDocument
from itbench.run.files import RunFolder, canonical

LOCK = {
    "schema": "itbench/lock/v1",
    "versions": {"itbench": "1"},
    "scenarios": {"sre-1": "x"},
    "seed": 0,
    "clock": "stepped:5",
}


def leave(folder, outcomes, *, clock="stepped:5", lock=LOCK, family=str, domain="sre"):
    """A run on disk: agent -> scenario -> its outcomes, P, F or I a letter each."""
    import yaml

    folder.mkdir(parents=True)
    agents, scenarios = tuple(outcomes), tuple(dict.fromkeys(name for each in outcomes.values() for name in each))
    document = RunDocument.model_validate({"schema": "itbench/run/v1", "scenarios": scenarios, "agents": agents})
    (folder / "run.yaml").write_text(yaml.safe_dump(document.model_dump(mode="json", by_alias=True)))
    (folder / "lock.json").write_bytes(canonical(lock))
    for agent, rows in outcomes.items():
        for name, letters in rows.items():
            for number, letter in enumerate(letters, start=1):
                outcome = {"P": "pass", "F": "fail", "I": "invalid"}[letter]
                base = {
                    "scenario": name,
                    "seed": 0,
                    "trial": number,
                    "agent": agent,
                    "outcome": outcome,
                    "cause": "checks",
                }
                more = {"clock": clock, "family": family(name), "domain": domain}
                times = {"metrics": {"time_to_mitigate_s": 100.0 * number if letter == "P" else None}}
                RunFolder(folder).trial(name, agent, number).write_result(Result.model_validate(base | more | times))
    return str(folder)


def suite(good, count=10):
    """Scenarios of which the first `good` pass in all three trials."""
    return {f"sre-{i}": "PPP" if i <= good else "FFF" for i in range(1, count + 1)}


def run(capsys, *words):
    """(exit code, output, errors) of a command line."""
    code = main([str(word) for word in words])
    return code, *capsys.readouterr()


def test_a_better_agent_is_called_so_with_wins_and_losses_by_name(tmp_path, capsys):
    a, b = leave(tmp_path / "new", {"mine": suite(9)}), leave(tmp_path / "old", {"mine": suite(2)})
    code, out, _ = run(capsys, "compare", a, b)
    assert code == 0
    assert "won: sre-3, sre-4, sre-5, sre-6, sre-7, sre-8, sre-9" in out and "lost:" not in out
    assert "mine (new) passes more often than mine (old): mine (new) minus mine (old): +70.0 points of pass@1" in out
    assert "7/3/0" in out and "0.0156" in out and "time to mitigate" in out


def test_the_json_says_the_same_and_swapping_turns_the_sign(tmp_path, capsys):
    a, b = leave(tmp_path / "new", {"mine": suite(9)}), leave(tmp_path / "old", {"mine": suite(2)})
    one, two = (json.loads(run(capsys, "compare", *runs, "--json")[1])["pairs"][0] for runs in ((a, b), (b, a)))
    assert one["difference"]["value"] == pytest.approx(0.7) == -two["difference"]["value"]
    assert one["p"] == two["p"] == 2 / 2**7 and one["significant"] and one["p_floor"] == 2 / 2**7
    assert one["win"] == two["loss"] and one["families"] == 10 and one["detectable"] > 0
    assert one["time_to_mitigate_s"]["difference"]["value"] < 0


def test_two_agents_of_one_run_are_compared_and_three_are_adjusted(tmp_path, capsys):
    rows = {"good": suite(9), "fair": suite(2), "bad": suite(0)}
    folder = leave(tmp_path / "all", rows)
    pairs = json.loads(run(capsys, "compare", folder, "--json")[1])["pairs"]
    assert [(each["a"], each["b"]) for each in pairs] == [("good", "fair"), ("good", "bad"), ("fair", "bad")]
    assert [each["p_adjusted"] for each in pairs] == [2 * 2 / 2**7, 3 * 2 / 2**9, 0.5]
    chosen = json.loads(run(capsys, "compare", folder, "--agent", "good", "--agent", "bad", "--json")[1])["pairs"]
    assert len(chosen) == 1 and chosen[0]["p_adjusted"] == chosen[0]["p"]


def test_too_few_families_are_said_instead_of_no_difference(tmp_path, capsys):
    folder = leave(tmp_path / "r", {"a": suite(9), "b": suite(0)}, family=lambda name: str(int(name[4:]) % 4))
    _, out, _ = run(capsys, "compare", folder)
    assert "Too few families to tell" in out and "not below 0.125" in out and "passes more often" not in out


def test_no_difference_is_not_called_equal_and_names_what_would_be_seen(tmp_path, capsys):
    uneven = {f"sre-{i}": "PFF" if i % 2 else "FFP" for i in range(1, 11)}
    other = {f"sre-{i}": "PPF" if i < 6 else "FFF" for i in range(1, 11)}
    _, out, _ = run(capsys, "compare", leave(tmp_path / "r", {"a": uneven, "b": other}))
    assert "No difference is shown, which is not to say that there is none" in out and "80 % power" in out


def test_equal_agents_are_told_apart_by_no_scenario(tmp_path, capsys):
    _, out, _ = run(capsys, "compare", leave(tmp_path / "r", {"a": suite(5), "b": suite(5)}))
    assert "No scenario tells them apart" in out and "0/10/0" in out


def test_many_invalid_trials_make_a_comparison_void(tmp_path, capsys):
    lame = {name: "I" + letters[1:] for name, letters in suite(9).items()}
    _, out, _ = run(capsys, "compare", leave(tmp_path / "r", {"a": lame, "b": suite(2)}))
    assert "Not comparable, 33% of the trials are invalid" in out


def test_scenarios_that_only_one_has_are_named_and_left_out(tmp_path, capsys):
    a, b = leave(tmp_path / "a", {"x": suite(9, 9)}), leave(tmp_path / "b", {"x": suite(2, 10)})
    _, out, _ = run(capsys, "compare", a, b)
    assert "only B: sre-10" in out and "7/2/0" in out


def test_other_inputs_are_noted(tmp_path, capsys):
    other = LOCK | {"versions": {"itbench": "2"}}
    a, b = leave(tmp_path / "a", {"x": suite(9)}), leave(tmp_path / "b", {"x": suite(2)}, lock=other)
    assert "differ in versions itbench" in run(capsys, "compare", a, b)[1]


@pytest.mark.parametrize(("margin", "code"), [(3, 1), (90, 0)])
def test_a_gate_fails_unless_no_worse_is_shown(tmp_path, capsys, margin, code):
    base = {f"sre-{i}": "PPF" if i % 2 else "FFP" for i in range(1, 11)}
    folder = leave(tmp_path / "r", {"a": base, "b": {name: letters[::-1] for name, letters in base.items()}})
    found, out, _ = run(capsys, "compare", folder, "--gate", margin)
    assert found == code and "Gate of" in out and "another run of exactly these scenarios" in out


def refused(capsys, *words):
    """The one line with which a command line is refused."""
    code, _, err = run(capsys, *words)
    assert code == 2 and err.count("\n") == 1
    return err


def test_bad_input_of_compare_is_one_clear_line(tmp_path, capsys):
    a = leave(tmp_path / "a", {"x": suite(9)})
    live = leave(tmp_path / "live", {"x": suite(9)}, clock="live")
    alien = leave(tmp_path / "alien", {"x": {"sre-77": "PPP"}})
    assert "no run there" in refused(capsys, "compare", a, tmp_path / "none")
    assert "nothing to compare" in refused(capsys, "compare", a)
    assert "named twice" in refused(capsys, "compare", a, a)
    assert "different clocks" in refused(capsys, "compare", a, live)
    assert "no scenario with valid trials of both" in refused(capsys, "compare", a, alien)
    assert "no finished trial of this agent" in refused(capsys, "compare", a, live, "--agent", "ghost")
    assert "--level" in refused(capsys, "compare", a, live, "--level", "2")
    assert "--gate" in refused(capsys, "compare", a, alien, "--gate", "nan")
    (tmp_path / "alien" / "lock.json").write_text("{")
    assert "damaged" in refused(capsys, "compare", a, alien)


def test_a_plan_gives_scenarios_for_a_difference_and_a_difference_for_scenarios(capsys):
    data = json.loads(run(capsys, "plan", "--difference", "10", "--trials", "3", "--json")[1])
    assert data["needed"] == [{"difference_points": 10.0, "trials": 3, "scenarios": 106}] and "seen" not in data
    turned = json.loads(run(capsys, "plan", "--scenarios", "106", "--trials", "3", "--json")[1])
    assert 9.9 < turned["seen"][0]["difference_points"] <= 10 and "needed" not in turned
    _, out, _ = run(capsys, "plan", "--setup-cost", "60", "--trial-cost", "6")
    assert "Best trials per scenario at these costs: 3.5" in out and "25.4 points" in out
    assert "no difference" in run(capsys, "plan", "--scenarios", "2", "--trials", "1")[1]


def test_a_plan_takes_its_spread_from_a_run(tmp_path, capsys):
    folder = leave(tmp_path / "r", {"a": suite(9), "b": suite(2)})
    data = json.loads(run(capsys, "plan", "--from", folder, "--difference", "10", "--json")[1])
    assert data["spread"]["source"] == "a and b" and data["spread"]["between"] == pytest.approx(0.2333, abs=1e-3)
    assert data["spread"]["within_a"] == 0


def test_bad_input_of_plan_is_one_clear_line(tmp_path, capsys):
    for words in (["--difference", "0"], ["--scenarios", "1"], ["--power", "1"], ["--rho", "2"], ["--difference", "nan"],
                  ["--setup-cost", "3"], ["--unpaired", "--from", "x"], ["--from", str(tmp_path)]):  # fmt: skip
        assert "expected" in refused(capsys, "plan", *words)
