"""Splitting command lines without a shell, and running programs that leave nothing behind."""

import asyncio
import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.tools.process import NotPlain, run, split

PATH = {"PATH": os.environ["PATH"]}


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), min_size=1, max_size=5))
def test_quoted_words_arrive_as_they_are(words):
    """Whatever is quoted is split back into the same words, unless a word alone is an operator or a substitution."""
    try:
        assert split(shlex.join(words)) == words
    except NotPlain:
        assert any(set(word) <= set("|&;<>") or word.startswith(("$(", "`")) for word in words)


@pytest.mark.parametrize(
    "command",
    [
        "get pods | grep x",
        "get pods|grep x",
        "get pods > out",
        "get pods 2>&1",
        "get pods && get svc",
        "get pods; get svc",
        "get pods &",
        "get pod $(hostname)",
        "get pod `hostname`",
        "apply -f - <<EOF",
        "get 'pods",
    ],
)
def test_what_needs_a_shell_is_refused(command):
    """One clear line instead of a surprise."""
    with pytest.raises(NotPlain) as caught:
        split(command)
    assert "\n" not in str(caught.value)


def test_operators_inside_quotes_are_text():
    """A shell inside a container gets its pipe."""
    assert split("exec web -- sh -c 'ps | wc -l > /tmp/x'")[-1] == "ps | wc -l > /tmp/x"
    assert split("""patch cm x -p '{"a": "b;c & d"}'""")[-1] == '{"a": "b;c & d"}'


async def test_both_streams_code_and_input_come_through():
    """What the program reads, prints and returns."""
    done = await run(["sh", "-c", "cat; echo err >&2; exit 3"], PATH, stdin=b"in")
    assert (done.code, done.stdout, done.stderr, done.text) == (3, "in", "err\n", "in\nerr")


async def test_a_program_that_ignores_its_input_is_no_error():
    """A closed pipe on the other side is none of our business."""
    assert (await run(["true"], PATH, stdin=b"x" * 1_000_000)).code == 0


async def test_a_cancelled_program_is_gone_with_its_children(tmp_path):
    """The whole process group is killed."""
    file = tmp_path / "pid"
    job = asyncio.create_task(run(["sh", "-c", f"sleep 600 & echo $! > {file}; wait"], PATH))
    while not (file.exists() and file.read_text().strip()):
        await asyncio.sleep(0.01)
    job.cancel()
    await asyncio.gather(job, return_exceptions=True)
    pid = int(file.read_text())
    for _ in range(200):
        if not _alive(pid):
            break
        await asyncio.sleep(0.01)
    assert not _alive(pid)


def _alive(pid):
    try:
        with Path(f"/proc/{pid}/stat").open() as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
