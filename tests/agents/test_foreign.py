"""Foreign agents: commands and Python functions in confined processes, and what each way to end means."""

import sys
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from itbench.agents.isolation import landlock
from itbench.agents.select import agent
from itbench.core.errors import UsageError
from itbench.tools.kubectl import KUBECTL

MODE = "auto" if landlock.abi() else "none"
PYTHON = """
import os
from itbench.core.documents.task import RootCause, Submission

async def solve(task, tools):
    waited = await tools.call("wait", {"seconds": 60})
    assert waited.ok and task.page.startswith("The shop")
    return Submission(diagnosis=[RootCause(entity="deploy/shop/cart", mechanism="herd")], notes=os.environ["HOME"])

def plain(task, tools):
    return {"verdict": "recovered"}

class Engineer:
    async def solve(self, task, tools):
        return {"verdict": "external"}

def silent(task, tools):
    return None

def crash(task, tools):
    raise ValueError("boom")

def nonsense(task, tools):
    return {"verdict": "purple"}

def number(task, tools):
    return 42

async def steps(task, tools):
    while (await tools.call("wait", {"seconds": 1})).ok:
        pass
    import time
    time.sleep(600)
"""


@pytest.fixture
def place(tmp_path):
    """The folder where agents are typed."""
    folder = tmp_path / "typed here"
    folder.mkdir()
    (folder / "mine.py").write_text(PYTHON)
    return folder


def script(place, body, name="fix.sh"):
    """An executable shell script."""
    file = place / name
    file.write_text("#!/bin/sh\n" + body)
    file.chmod(0o755)
    return f"./{name}"


async def test_a_python_function_runs_isolated_and_answers(make_hand, place):
    """It gets task and tools, acts in world time, and its answer comes back; its home is not the user's."""
    hand = make_hand(isolation=MODE)
    outcome = await agent("mine.py:solve", place).run(hand)
    assert outcome.cause == "checks", outcome.detail
    assert outcome.submission.diagnosis[0].entity == "deployment/shop/cart"
    assert outcome.submission.notes == str(hand.folder / "agent" / "home")
    assert outcome.isolation == (f"landlock-{landlock.abi()}" if MODE == "auto" else "none")
    assert [call.tool for call in hand.calls] == ["wait", "submit"]
    assert not (hand.folder / "agent").exists()


@pytest.mark.parametrize(("name", "verdict"), [("mine:plain", "recovered"), ("mine.py:Engineer", "external")])
async def test_modules_classes_and_plain_functions_are_agents_too(make_hand, place, name, verdict):
    """Whatever way a Python program offers its function."""
    outcome = await agent(name, place).run(make_hand(isolation=MODE))
    assert outcome.submission.verdict == verdict, outcome.detail


@pytest.mark.parametrize(
    ("name", "cause", "word"),
    [
        ("mine.py:silent", "no_submission", "without an answer"),
        ("mine.py:crash", "agent_crash", "ValueError: boom"),
        ("mine.py:nonsense", "submission_invalid", "purple"),
        ("mine.py:number", "submission_invalid", "int"),
        ("late.py:solve", "agent_not_startable", "not_there"),
        ("mine.py:steps", "step_limit", "step limit"),
    ],
)
async def test_each_end_of_a_function_has_its_cause(make_hand, place, name, cause, word):
    """And the detail says what happened in one line."""
    (place / "late.py").write_text("from json import not_there as solve\n")
    outcome = await agent(name, place).run(make_hand(isolation=MODE, steps=3))
    assert (outcome.submission, outcome.cause) == (None, cause)
    assert word in outcome.detail
    assert "\n" not in outcome.detail


async def test_a_shell_script_works_with_the_tools_and_submits(make_hand, place):
    """TASK.md and task.json lie there, the tools answer, `itbench submit` ends the trial though the script goes on."""
    body = """
set -e
grep -q 'The shop is broken' TASK.md
test -r task.json
itbench task --json | grep -q '"trial"'
itbench task | grep -q '^## How to answer'
itbench submit --help | grep -q 'hand in an answer'
itbench tool wait seconds=30
itbench tool | grep -q '^submit'
echo '{"verdict": "incident", "notes": "'"$1 $2"'"}' | itbench submit
sleep 600
"""
    hand = make_hand(isolation=MODE)
    outcome = await agent(script(place, body) + " --fast 'two words'", place).run(hand)
    assert outcome.cause == "checks", outcome.detail
    assert outcome.submission.notes == "--fast two words"
    assert hand.calls[0].end == 30.0


async def test_an_answer_file_ends_the_trial_when_it_can_be_read(make_hand, place):
    """Half a file is no answer yet; the whole one is, without waiting for the program's end."""
    body = """printf '{"verdict":' > submission.json; sleep 1.2; printf '"incident"}' >> submission.json; sleep 600"""
    outcome = await agent(script(place, body), place).run(make_hand(isolation=MODE))
    assert outcome.submission.verdict == "incident"


@pytest.mark.parametrize(
    ("body", "cause", "word"),
    [
        ("exit 0", "no_submission", "without an answer"),
        ("echo 'no such host' >&2; exit 4", "agent_exit_nonzero", "exit code 4 - no such host"),
        ("kill -9 $$", "agent_crash", "signal 9"),
        ("echo '{' > submission.json", "submission_invalid", "not JSON"),
        ("echo '{\"verdict\": 1}' > submission.json", "submission_invalid", "verdict"),
        ("ln -s ../truth.yaml submission.json", "submission_invalid", "submission.json"),
        ("echo '[]' | itbench submit", "agent_exit_nonzero", "not a JSON object"),
        ('echo \'{"verdict": "x"}\' | itbench submit || true', "submission_invalid", ""),
    ],
)
async def test_each_end_of_a_command_has_its_cause(make_hand, place, body, cause, word):
    """And the detail says what happened."""
    outcome = await agent(script(place, body), place).run(make_hand(isolation=MODE))
    assert (outcome.submission, outcome.cause) == (None, cause)
    assert word in outcome.detail


async def test_a_script_without_interpreter_cannot_be_started(make_hand, place):
    """The reason names it."""
    file = place / "odd"
    file.write_text("#!/no/such/interpreter\n")
    file.chmod(0o755)
    outcome = await agent("./odd", place).run(make_hand(isolation=MODE))
    assert outcome.cause == "agent_not_startable"
    assert "FileNotFoundError" in outcome.detail


async def test_wall_and_world_time_end_an_agent_that_thinks_forever(make_hand, place):
    """Each with its cause, and the process is gone."""
    name = script(place, "exec sleep 600")
    outcome = await agent(name, place).run(make_hand(isolation=MODE, wall_s=0.5))
    assert (outcome.cause, outcome.detail) == ("wall_limit", "wall limit reached")


async def test_world_time_ends_an_agent_that_does_nothing(make_hand, place):
    """On a live clock the agent's time passes while it thinks."""
    hand = make_hand(isolation=MODE, time_s=50.0)
    hand.toolbox.context.clock.now = iter(range(0, 10_000, 20)).__next__
    outcome = await agent(script(place, "exec sleep 600"), place).run(hand)
    assert outcome.cause == "time_limit"


async def test_a_foreign_agent_sees_neither_secrets_nor_the_users_environment(make_hand, place, monkeypatch):
    """Variables of the user stay outside, those passed on arrive, the trial's files cannot be read."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("ITBENCH_OTHER", "x")
    body = """
cat ../truth.yaml 2>/dev/null && exit 9
test -z "$OPENAI_API_KEY" && test -z "$ITBENCH_OTHER" && test "$MODEL" = small || exit 8
test "$ITBENCH_WORKSPACE" = "$PWD" || exit 7
echo '{"notes": "done"}' | itbench submit
"""
    if MODE == "none":
        pytest.skip("this kernel has no Landlock")
    outcome = await agent(script(place, body), place).run(make_hand(isolation=MODE, env={"MODEL": "small"}))
    assert outcome.cause == "checks", outcome.detail


async def test_an_agent_can_forward_ports_to_itself(make_hand, place):
    """It may listen on the ports set aside for that, and connect to them."""
    code = """
import os, socket
def solve(task, tools):
    port = int(os.environ["ITBENCH_FORWARD_PORTS"].split()[0])
    with socket.create_server(("127.0.0.1", port)), socket.create_connection(("127.0.0.1", port)):
        return {"verdict": "incident"}
"""
    (place / "forward.py").write_text(code)
    outcome = await agent("forward.py:solve", place).run(make_hand(isolation=MODE))
    assert outcome.cause == "checks", outcome.detail


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("./missing.sh", "no such agent"),
        ("missing.py:solve", "no such agent"),
        ("mine.py:missing", "has no function"),
        ("no-such-program-at-all --x", "no such agent"),
        ("./mine.py", "chmod"),
        ("'unbalanced", "cannot split"),
        ("", "empty"),
        ("decoy", "number from 1"),
        ("decoy:0", "number from 1"),
        ("oracle:x", "number from 1"),
        ("nop:3", "takes no argument"),
        ("constant:purple", "unknown verdict"),
        ("react", "not available"),
        ("http://127.0.0.1:1", "not available"),
    ],
)
def test_agents_that_cannot_be_are_refused_when_named(place, name, word):
    """Before anything is stood up, in one line."""
    with pytest.raises(UsageError, match=word):
        agent(name, place)


def test_a_command_is_looked_up_where_it_was_typed(place):
    """Its program and the files among its words become absolute; other words stay."""
    script(place, "true")
    (place / "config.yaml").touch()
    found = agent("./fix.sh config.yaml fast", place)
    assert found.argv == [str(place / "fix.sh"), str(place / "config.yaml"), "fast"]
    assert agent(f"{sys.executable} -V", place).argv == [sys.executable, "-V"]


async def test_kubectl_is_no_way_around_the_confinement(make_hand, place, tmp_path):
    """What the agent cannot read, kubectl started by the tool cannot read for it; its own files it can."""
    if MODE == "none":
        pytest.skip("this kernel has no Landlock")
    hand = make_hand(isolation=MODE)
    config = tmp_path / "kubeconfig"
    config.write_text("{}")
    endpoints = hand.toolbox.context.endpoints.model_copy(update={"kubeconfig": str(config)})
    hand.toolbox.context.endpoints = endpoints
    hand = replace(hand, task=hand.task.model_copy(update={"endpoints": endpoints}))
    hand.toolbox.tools["kubectl"] = KUBECTL
    hand.toolbox._validators |= {"kubectl": Draft202012Validator(KUBECTL.input_schema)}
    code = f"""
def solve(task, tools):
    import asyncio, pathlib
    pathlib.Path("own").write_text("mine")
    def show(path):
        words = ["create", "configmap", "x", "--dry-run=client", "-o", "yaml", "--from-file=" + path]
        return asyncio.run(tools.call("kubectl", {{"command": words}}))
    stolen, own = show({str(hand.workspace.parent / "truth.yaml")!r}), show("own")
    return {{"notes": stolen.text + own.text, "answer": {{"stolen": stolen.ok, "own": own.ok}}}}
"""
    (place / "thief.py").write_text(code)
    outcome = await agent("thief.py:solve", place).run(hand)
    assert outcome.cause == "checks", outcome.detail
    assert outcome.submission.answer == {"stolen": False, "own": True}, outcome.submission.notes
    assert "the truth" not in outcome.submission.notes
