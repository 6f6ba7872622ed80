"""Calling tools: limits, schemas, deadlines, cuts, records."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.core.documents.task import Endpoints, Submission
from itbench.core.errors import UsageError
from itbench.tools.catalog import TOOLS, available, toolbox
from itbench.tools.context import stable_digest
from itbench.tools.registry import Tool, Toolbox, ToolResult


def tool(call, **changes):
    """A tool that takes any object."""
    return Tool(**{"name": "t", "description": "d", "input_schema": {"type": "object"}, "call": call, **changes})


async def echo(arguments, context):
    """Answers with its arguments."""
    return ToolResult(str(dict(arguments)))


async def test_a_call_is_one_step_and_is_recorded(make_context):
    """A call pays one bracket, counts one step and leaves one record in world time."""
    context = make_context()
    result = await Toolbox([tool(echo)], context).call("t", {"a": 1})
    assert result.ok
    assert (context.clock.brackets, context.meter.steps) == (1, 1)
    (record,) = context.records
    assert (record.seq, record.tool, record.arguments, record.ok) == (1, "t", {"a": 1}, True)
    assert (record.start, record.end) == (105.0, 105.0)


async def test_the_last_step_is_the_last(make_context):
    """After the limit calls are refused with the cause set, but an answer can still be handed in."""
    context = make_context(steps=2)
    box = toolbox(context)
    for _ in range(2):
        assert (await box.call("wait", {"seconds": 1})).ok
    refused = await box.call("wait", {"seconds": 1})
    assert not refused.ok
    assert "step limit" in refused.text
    assert context.meter.cause == "step_limit"
    assert (await box.submit(Submission(verdict="incident"))).ok


async def test_time_ends_the_agent(make_context):
    """World time beyond the limit stops the agent with cause time_limit; wait goes no further than that."""
    context = make_context(time_s=60.0)
    box = toolbox(context)
    assert (await box.call("wait", {"seconds": 3000})).text == "60 seconds have passed"
    assert context.meter.cause == "time_limit"
    assert context.meter.over.is_set()


async def test_wait_costs_exactly_its_seconds(make_context):
    """Waiting pays no step's cost on top."""
    context = make_context()
    await toolbox(context).call("wait", {"seconds": 30})
    assert context.clock.now() == 130.0
    assert context.meter.steps == 1


async def test_nothing_after_submit(make_context):
    """Once the answer is in, every call is refused, a second answer too."""
    context = make_context()
    box = toolbox(context)
    assert (await box.call("submit", {"verdict": "recovered"})).ok
    assert context.submission == Submission(verdict="recovered")
    assert not (await box.call("wait", {"seconds": 1})).ok
    assert not (await box.call("submit", {"verdict": "incident"})).ok
    assert context.submission.verdict == "recovered"


async def test_an_answer_is_on_record_before_anybody_hears_of_it(make_context):
    """Who waits for the answer ends the trial at once, so the record must not come after."""
    context = make_context()
    sink, order = context.sink, []
    context.sink = lambda record: (order.append((record.tool, context.submitted.is_set())), sink(record))
    await toolbox(context).call("submit", {"verdict": "recovered"})
    assert order == [("submit", False)]
    assert context.submitted.is_set()


async def test_unreadable_answers_may_be_corrected_a_few_times(make_context):
    """Five refusals end the trial as submission_invalid; before that a good answer counts."""
    context = make_context()
    box = toolbox(context)
    for left in (4, 3, 2, 1):
        assert f"{left} attempts left" in (await box.call("submit", {"verdict": "?"})).text
    assert context.meter.cause == ""
    assert "last" in (await box.call("submit", {"verdict": "?"})).text
    assert context.meter.cause == "submission_invalid"


async def test_wrong_arguments_cost_nothing(make_context):
    """A call that does not fit the schema, or names no tool, is refused before any step is paid."""
    context = make_context()
    box = toolbox(context)
    assert "seconds" in (await box.call("wait", {})).text
    assert "did you mean 'wait'" in (await box.call("wiat", {"seconds": 1})).text
    assert context.meter.steps == 0
    assert context.records == []


async def test_a_hanging_tool_is_given_up(make_context):
    """The deadline of a tool ends the call, and the tool is cancelled, not forgotten."""
    ended = asyncio.Event()

    async def hang(arguments, context):
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    result = await Toolbox([tool(hang, deadline_s=0.05)], make_context()).call("t")
    assert not result.ok
    assert "0.05 s" in result.text
    assert ended.is_set()


async def test_a_blocked_tool_ends_when_world_time_runs_out(make_context):
    """A call that lets world time race ends with the agent's time, not with its own deadline."""
    context = make_context(time_s=50.0)

    async def race(arguments, context):
        while True:
            context.clock.time += 10
            await asyncio.sleep(0)

    result = await Toolbox([tool(race)], context).call("t")
    assert "time limit" in result.text


async def test_an_exception_in_a_tool_is_a_result(make_context):
    """Agents never see a traceback."""

    async def crash(arguments, context):
        raise RuntimeError("boom")

    result = await Toolbox([tool(crash)], make_context()).call("t")
    assert (result.ok, result.text) == (False, "t: RuntimeError: boom")


async def test_calls_are_served_in_order(make_context):
    """Concurrent calls do not interleave."""
    running = []

    async def slow(arguments, context):
        running.append(arguments["n"])
        await asyncio.sleep(0.01)
        assert running[-1] == arguments["n"]
        return ToolResult("")

    box = Toolbox([tool(slow)], make_context())
    assert all(result.ok for result in await asyncio.gather(*(box.call("t", {"n": n}) for n in range(5))))
    assert running == [0, 1, 2, 3, 4]


async def test_long_output_is_cut_in_the_middle(make_context):
    """Head and tail stay, the note says how much there was; the record holds what the agent saw."""
    context = make_context()

    async def talk(arguments, context):
        return ToolResult("a" * 500 + "z" * 500, structured=[1])

    result = await Toolbox([tool(talk, limit=100)], context).call("t")
    assert result.text.startswith("a" * 75 + "\n")
    assert result.text.endswith("\n" + "z" * 25)
    assert "1000 characters" in result.text
    assert context.records[0].text == result.text


def test_only_tools_with_an_estate_behind_them_are_offered(make_context):
    """An account has no kubectl; wait and submit are always there."""
    assert available(Endpoints(aws_endpoint_url="http://x")) == ("aws", "wait", "submit")
    assert [spec.name for spec in toolbox(make_context(), ["sql"]).specs] == ["sql", "wait", "submit"]
    with pytest.raises(UsageError, match="unknown tool"):
        toolbox(make_context(), ["kubctl"])


def test_every_tool_describes_itself():
    """Names are unique, schemas are objects, and nothing is both harmless and destructive."""
    assert len({item.name for item in TOOLS}) == len(TOOLS)
    for item in TOOLS:
        assert item.input_schema["type"] == "object"
        assert len(item.description) > 20
        assert not (item.read_only and item.destructive)


@given(st.integers(0, 10**5), st.integers(1, 65535), st.integers(0, 59))
def test_the_digest_of_a_result_ignores_what_differs_between_equal_runs(age, port, second):
    """Ages, wall times, loopback ports and column widths change nothing; words and counts do."""
    first = stable_digest(True, "web-1 1/1 Running 5m12s at 2026-01-12T08:00:00Z from 127.0.0.1:1")
    again = stable_digest(True, f"web-1   1/1 Running {age}s at 2027-03-01T09:00:{second:02}Z from 127.0.0.1:{port}")
    assert first == again
    assert first != stable_digest(True, "web-1 0/1 Running 5m12s at 2026-01-12T08:00:00Z from 127.0.0.1:1")
    assert first != stable_digest(False, "web-1 1/1 Running 5m12s at 2026-01-12T08:00:00Z from 127.0.0.1:1")
