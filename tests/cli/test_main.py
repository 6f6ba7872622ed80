"""The command line's own manners."""

import os
import subprocess
import sys

import pytest

from itbench.cli import main as cli
from itbench.core.errors import EnvironmentFault, UsageError


def test_without_a_verb_the_overview_is_printed_and_the_exit_code_is_bad_usage(capsys):
    assert cli.main([]) == 2
    assert "itbench VERB --help" in capsys.readouterr().out


def test_a_misspelt_verb_is_one_line_with_the_nearest(capsys):
    assert cli.main(["prov"]) == 2
    assert capsys.readouterr().err == "itbench: no such verb: 'prov'; did you mean 'prove'?\n"


@pytest.mark.parametrize("verb", [verb for verb in cli.VERBS if verb not in cli.INSIDE])
def test_every_verb_explains_itself_with_examples(verb, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main([verb, "--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0 and f"itbench {verb}" in text and "examples:" in text


def test_an_unknown_option_is_one_line_and_bad_usage(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["list", "--nosuch"])
    assert ended.value.code == 2 and capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code"), [(UsageError("x", seen=1), 2), (EnvironmentFault("y"), 3), (KeyboardInterrupt(), 130)]
)
def test_errors_become_one_line_and_their_exit_code(error, code, capsys, monkeypatch):
    def fail(verb, rest):
        raise error

    monkeypatch.setattr(cli, "_run_verb", fail)
    assert cli.main(["list"]) == code
    assert capsys.readouterr().err.startswith("itbench list: ")


def test_importing_the_package_loads_nothing_heavy():
    heavy = ("pandas", "kubernetes", "boto3", "aiohttp", "numba")
    code = f"import sys, itbench, itbench.cli.main; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "kind", ["scenario", "fault", "app", "metric", "task", "submission", "evidence", "result", "run", "lock"]
)
def test_every_document_has_a_json_schema(kind, capsys):
    assert cli.main(["schema", kind]) == 0
    assert '"$schema"' in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["run", "up"])
@pytest.mark.parametrize("clock", ["abc", "scaled", "scaled:0", "stepped:x", "live:2"])
def test_a_clock_that_is_none_is_bad_usage_in_one_line(verb, clock, capsys):
    assert cli.main([verb, "sre-1", "--clock", clock]) == 2
    said = f"itbench {verb}: unknown clock: {clock!r}; expected auto, live, scaled:N or stepped:S\n"
    assert capsys.readouterr().err == said


def test_a_library_with_one_wrong_scenario_lists_the_others(tmp_path, capsys):
    folder = tmp_path / "scenarios" / "sre" / "900-x"
    folder.mkdir(parents=True)
    (folder / "scenario.yaml").write_text("schema: itbench/scenario/v1\nid: sre-900\n")
    assert cli.main(["list", "--library", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert "sre-12 " in said.out and "sre-900" not in said.out
    assert said.err.startswith(f"itbench list: {folder}/scenario.yaml:1: title: required field is missing")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("run", "sre-1", "--seed", "-1"), "--seed"),
        (("run", "sre-1", "--seed", str(2**63)), "--seed"),
        (("up", "sre-1", "--seed", "-1"), "--seed"),
        (("up", "sre-1", "--seed", str(2**63)), "--seed"),
        (("prove", "sre-1", "--seeds", f"0,{2**63}"), "--seeds"),
        (("prove", "sre-1", "--seeds=-1"), "--seeds"),
        (("run", "sre-1", "--trials", "0"), "--trials"),
        (("run", "sre-1", "--trials", "10001"), "--trials"),
    ],
)
def test_a_number_out_of_bounds_is_bad_usage_in_one_line(words, option, capsys):
    assert cli.main(list(words)) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"itbench {words[0]}: {option} is too ") and said.count("\n") == 1


def test_a_domain_that_is_none_is_named_with_the_nearest(capsys):
    assert cli.main(["list", "--domain", "sree"]) == 2
    expected = "itbench list: no such domain: 'sree'; expected one of sre, ciso, finops; did you mean 'sre'?\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("raw", [b"\xff\xfe\x00", b"a: [", b"- 1", b"clusters: 3", b"users: [x]", b"x: &x [*x]"])
def test_a_file_that_is_no_kubeconfig_is_bad_usage_in_one_line(raw, tmp_path, capsys):
    file = tmp_path / "config"
    file.write_bytes(raw)
    assert cli.main(["audit", "--profile", "cis-k8s", "--kubeconfig", str(file)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("itbench audit: not a kubeconfig: ") and said.count("\n") == 1


@pytest.mark.parametrize("verb", [["run", "sre-1"], ["prove", "sre-1"], ["up", "sre-1"]])
def test_a_cache_that_cannot_be_used_is_said_before_anything_is_stood_up(tmp_path, verb):
    """One line with the folder, the reason and what to do."""
    (tmp_path / "file").write_text("")
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "file")}
    command = [sys.executable, "-m", "itbench.cli.main", *verb]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert f"cannot use the cache folder: '{tmp_path / 'file' / 'itbench'}'" in done.stderr
    assert "Not a directory; set XDG_CACHE_HOME" in done.stderr and done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
