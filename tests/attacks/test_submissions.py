"""Answers made to break the trial instead of passing it: each is refused in one line and leaves a trial that can be recorded."""

import asyncio
import os

import pytest

from itbench.agents.isolation import landlock
from itbench.agents.select import agent
from itbench.run.files import canonical

MODE = "auto" if landlock.abi() else "none"


def program(folder, body):
    """A shell script as an agent."""
    file = folder / "attack.sh"
    file.write_text("#!/bin/sh\n" + body)
    file.chmod(0o755)
    return agent("./attack.sh", folder)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("""echo '{"answer": {"saving": NaN}}' > submission.json""", "not JSON compliant"),
        ("""echo '{"answer": {"saving": -Infinity}}' > submission.json""", "not JSON compliant"),
        ("""echo '{"notes": "\\\\ud800"}' > submission.json""", "surrogates"),
        ("""python3 -c "print('{\\"answer\\":{\\"a\\":' + '[' * 90000 + ']' * 90000 + '}}')" > submission.json""", ""),
        ("head -c 30000000 /dev/zero > submission.json", "longer than"),
        ("mkfifo submission.json", "regular file"),
        ("mkdir submission.json", "regular file"),
        ("ln -s /etc/passwd submission.json", "submission.json"),
        ("ln -s submission.json submission.json", "submission.json"),
    ],
)
async def test_an_answer_that_no_file_can_hold_is_no_answer(make_hand, tmp_path, body, word):
    """The cause is the agent's own, and what was recorded can be written down."""
    hand = make_hand(isolation=MODE)
    outcome = await program(tmp_path, body).run(hand)
    assert (outcome.submission, outcome.cause) == (None, "submission_invalid")
    assert word in outcome.detail and "\n" not in outcome.detail
    canonical([call.arguments for call in hand.calls])


async def test_only_the_first_answer_counts(make_hand, tmp_path):
    """Whoever tries a second answer by any way keeps the first."""
    body = """
echo '{"verdict": "incident"}' | itbench submit
echo '{"verdict": "recovered"}' | itbench submit
echo '{"verdict": "recovered"}' > submission.json
sleep 2
"""
    hand = make_hand(isolation=MODE)
    outcome = await program(tmp_path, body).run(hand)
    assert outcome.submission.verdict == "incident"
    assert [call.tool for call in hand.calls] == ["submit"]


async def test_nothing_is_done_after_the_answer(make_hand, tmp_path):
    """A tool called after the submission is refused, so that no repair comes late."""
    hand = make_hand(isolation=MODE)
    body = 'echo \'{"notes": "done"}\' | itbench submit; itbench tool wait seconds=60; echo $? > code; sleep 2'
    await program(tmp_path, body).run(hand)
    assert [call.tool for call in hand.calls] == ["submit"]


@pytest.mark.parametrize("arguments", [{"seconds": float("nan")}, {"seconds": 1, "x": "\ud800"}, {"seconds": object()}])
async def test_a_call_that_cannot_be_recorded_is_not_done(make_hand, arguments):
    """Neither time passes nor does anything enter the evidence."""
    hand = make_hand()
    result = await hand.toolbox.call("wait", arguments)
    assert not result.ok and "not plain JSON" in result.text and hand.calls == []


async def test_megabytes_of_output_hold_nothing_up(make_hand, tmp_path):
    """What an agent prints goes to a file, however much it is."""
    body = 'head -c 50000000 /dev/zero; head -c 50000000 /dev/zero >&2; echo \'{"notes": "done"}\' | itbench submit'
    outcome = await program(tmp_path, body).run(make_hand(isolation=MODE))
    assert outcome.cause == "checks", outcome.detail


@pytest.mark.skipif(MODE == "none", reason="this kernel has no Landlock")
async def test_neither_the_parent_nor_the_worker_can_be_ended(make_hand, tmp_path):
    """Signals reach only what the agent started itself."""
    body = f'kill -9 $PPID; kill -9 {os.getpid()}; kill -9 -1; echo \'{{"notes": "done"}}\' | itbench submit'
    if landlock.abi() < 6:
        pytest.skip("this kernel's Landlock does not govern signals")
    outcome = await program(tmp_path, f"({body}) &\nwait\nexit 3").run(make_hand(isolation=MODE))
    assert outcome.cause in ("checks", "agent_crash", "agent_exit_nonzero")


async def test_a_daemon_that_closed_everything_is_gone_with_the_agent(make_hand, tmp_path):
    """Twice forked, in a session of its own, deaf to signals: what would undo or add something later does not live to do it."""
    body = """
setsid sh -c 'trap "" TERM HUP INT; exec >/dev/null 2>&1 <&-; while true; do echo alive > late; sleep 0.1; done' &
while ! test -e late; do sleep 0.1; done
echo '{"notes": "done"}' | itbench submit
"""
    hand = make_hand(isolation=MODE)
    outcome = await program(tmp_path, body).run(hand)
    assert outcome.cause == "checks", outcome.detail
    (hand.workspace / "late").unlink()
    await asyncio.sleep(0.5)
    assert not (hand.workspace / "late").exists()
