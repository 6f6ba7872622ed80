"""Scripted built-in agents: steps, repairs, decoys, constants, and the saboteur's hand."""

import json

import pytest

from itbench.agents.base import AgentFailed, Script
from itbench.agents.builtin import saboteur
from itbench.agents.select import BUILTIN, agent
from itbench.agents.steps import STEPS, execute, parse_step
from itbench.core.documents.scenario import Entry
from itbench.core.documents.task import Submission, Task, ToolSpec
from itbench.core.errors import ScenarioDefect, UsageError
from itbench.library.vocabulary import spec_mapping
from itbench.tools.registry import ToolResult


class FakeTools:
    """Remembers calls; answers by the first fragment found in the command."""

    def __init__(self, answers=None, names=("kubectl", "wait")):
        self.answers, self.calls = answers or {}, []
        self.specs = tuple(ToolSpec(name=name, description="", input_schema={}) for name in names)

    async def call(self, name, arguments=None):
        """Remember and answer."""
        command = (arguments or {}).get("command", "")
        command = command if isinstance(command, str) else " ".join(command)
        self.calls.append(f"{name} {command}".strip())
        for fragment, answer in self.answers.items():
            if fragment in command:
                return answer if isinstance(answer, ToolResult) else ToolResult(json.dumps(answer))
        return ToolResult("")

    async def submit(self, submission):
        """Never called here."""
        raise AssertionError


TASK = Task(trial="t", domain="sre", page="p", answers=("mitigation",))


def entry(kind, spec):
    """A step as the library reads it."""
    return Entry(kind=kind, spec=spec)


@pytest.mark.parametrize(
    ("kind", "spec", "field", "value"),
    [
        ("kubectl", "get pods", "value", "get pods"),
        ("kubectl", {"command": "apply -f -", "stdin": "{}"}, "stdin", "{}"),
        ("kubectl", {"command": ["get", "pods"], "may_fail": True}, "value", ("get", "pods")),
        ("edit", {"value": "configmap/a/b", "changes": [{"find": "x", "replace": "y"}]}, "value", "configmap/a/b"),
        ("aws", "sts get-caller-identity", "value", "sts get-caller-identity"),
        ("wait", "2m", "value", 120.0),
        ("wait", 5, "value", 5.0),
        ("file", {"path": "a", "content": "b"}, "path", "a"),
        ("answer", {"x": 1}, "root", {"x": 1}),
    ],
)
def test_steps_have_short_and_long_forms(kind, spec, field, value):
    """As scenario authors write them; the library's own validation accepts the same."""
    assert getattr(parse_step(entry(kind, spec)), field) == value
    STEPS[kind].model_validate(spec_mapping(spec, STEPS[kind]))


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("kubctl", "get"),
        ("wait", "soon"),
        ("wait", 0),
        ("file", {"path": "a"}),
        ("kubectl", {"cmd": "x"}),
        ("answer", 3),
    ],
)
def test_wrong_steps_are_defects_of_the_scenario(kind, spec):
    """Found when the scenario is loaded, not in the middle of a trial."""
    with pytest.raises(ScenarioDefect):
        parse_step(entry(kind, spec))


async def test_steps_act_through_the_tools(make_hand):
    """A long wait is waited in pieces, a file lands in the workspace, answers are merged."""
    hand = make_hand()
    steps = [
        entry("wait", "2h"),
        entry("file", {"path": "a/b", "content": "c"}),
        entry("answer", {"x": 1}),
        entry("answer", {"y": 2}),
    ]
    hand.toolbox.context.meter.limits = hand.toolbox.context.meter.limits.model_copy(update={"time_s": 1e6})
    assert await execute(steps, hand.toolbox) == {"x": 1, "y": 2}
    assert [call.arguments.get("seconds") for call in hand.calls] == [3600.0, 3600.0, None]
    assert (hand.workspace / "a" / "b").read_text() == "c"


async def test_oracle_and_decoy_follow_their_scripts(make_hand):
    """Each submits the truth that came with its script."""
    truth = Submission(verdict="incident")
    scripts = tuple(Script(f"s{n}", (entry("wait", n), entry("answer", {"n": n})), truth) for n in (1, 2, 3))
    for name, number in (("oracle", 1), ("oracle:2", 2), ("decoy:3", 3)):
        hand = make_hand(repairs=scripts[:2], decoys=scripts)
        outcome = await agent(name, hand.workspace).run(hand)
        assert outcome.submission == truth.model_copy(update={"answer": {"n": number}})
        assert hand.calls[0].arguments == {"seconds": number}
        for file in hand.workspace.parent.rglob("*"):
            if file.is_file():
                file.unlink()
        hand.folder.rmdir()
        hand.workspace.rmdir()


async def test_a_step_that_fails_is_told(make_hand):
    """A reference repair that does not work is no silent fail; `may_fail` says that failing is fine."""
    steps = (
        entry("kubectl", {"command": "get pods", "may_fail": True}),
        entry("file", {"path": "../x", "content": ""}),
    )
    outcome = await agent("oracle", make_hand).run(make_hand(repairs=(Script("r", steps),)))
    assert outcome.cause == "agent_crash"
    assert outcome.detail.startswith("step 2 (file ../x) failed: files:")


async def test_a_script_that_is_not_there_is_a_wrong_request(make_hand):
    """Not an agent's fault."""
    with pytest.raises(UsageError, match="no such repair"):
        await agent("oracle:2", make_hand).run(make_hand(repairs=(Script("only"),)))


async def test_nop_does_nothing(make_hand):
    """No call, no answer."""
    hand = make_hand()
    outcome = await agent("nop", hand.workspace).run(hand)
    assert (outcome.submission, outcome.cause, hand.calls) == (None, "no_submission", [])


@pytest.mark.parametrize(
    ("domain", "name", "verdict"),
    [
        ("sre", "constant", "no-incident"),
        ("finops", "constant", "no-change"),
        ("sre", "constant:Recovered", "recovered"),
    ],
)
async def test_constant_looks_at_nothing(make_hand, domain, name, verdict):
    """Its only call is the answer."""
    hand = make_hand(domain=domain)
    outcome = await agent(name, hand.workspace).run(hand)
    assert outcome.submission == Submission(verdict=verdict)
    assert [call.tool for call in hand.calls] == ["submit"]


def test_built_in_agents_are_scripted(tmp_path):
    """They run on the stepped clock; what they are called is what was asked for."""
    for name in BUILTIN:
        found = agent("decoy:1" if name == "decoy" else name, tmp_path)
        assert found.scripted
        assert found.name.split(":")[0] == name


async def test_the_saboteur_removes_probes_before_it_scales_to_zero():
    """So that a grader that trusts probes, replica counts or alerts is found out."""
    probe = {"httpGet": {"path": "/", "port": 80}}
    deployment = {
        "metadata": {"name": "web"},
        "spec": {"template": {"metadata": {}, "spec": {"containers": [{"name": "c", "readinessProbe": probe}]}}},
    }
    tools = FakeTools(
        {
            "get namespaces": ToolResult("namespace/kube-system\nnamespace/shop"),
            "get deployments": {"items": [deployment]},
        }
    )
    submission = await saboteur.solve(TASK, tools)
    assert submission.verdict == "recovered"
    text = "\n".join(tools.calls)
    assert "/spec/template/spec/containers/0/readinessProbe" in text
    assert text.index("patch deployment/web") < text.index("scale deployments,statefulsets --all --replicas=0 -n shop")
    assert "kube-system" not in text
    assert "delete networkpolicies,resourcequotas" in text


async def test_the_saboteur_deletes_an_account():
    """Everything it can name."""
    tools = FakeTools(
        {"describe-volumes": ["vol-1", "vol-2"], "describe-instances": ToolResult("denied", ok=False)}, names=("aws",)
    )
    assert (await saboteur.solve(TASK.model_copy(update={"domain": "finops"}), tools)).verdict == "no-change"
    assert [call for call in tools.calls if "delete-volume" in call] == [
        "aws ec2 delete-volume --volume-id vol-1",
        "aws ec2 delete-volume --volume-id vol-2",
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nomod.mod:f", "no such agent: 'nomod.mod:f'"),
        ("json.nomod:f", "no such agent: 'json.nomod:f'"),
        ("mine.py:sovle", "has no function: 'sovle'; expected one of solve; did you mean 'solve'"),
        ("mine:sovle", "has no function: 'sovle'"),
        ("broken.py:f", "the agent is not Python"),
    ],
)
def test_a_python_agent_that_cannot_be_loaded_is_found_before_anything_is_stood_up(tmp_path, name, message):
    """None of its code runs for that: outside of its confinement it could read the truth."""
    (tmp_path / "mine.py").write_text("async def solve(task, tools): ...")
    (tmp_path / "broken.py").write_text("def f(:")
    with pytest.raises(UsageError, match=message):
        agent(name, tmp_path)
    assert agent("mine.py:solve", tmp_path).name == "mine.py:solve"
    assert agent("mine:solve", tmp_path).name == "mine:solve"


async def test_an_edit_changes_what_it_read_and_replaces_the_object_by_it():
    """As `kubectl edit`: the text of the object, changed where it matches first."""
    sent = []

    class Tools(FakeTools):
        async def call(self, name, arguments=None):
            sent.append(arguments)
            return ToolResult("a: 1\nb: 1\nc: 1\n")

    changes = [{"find": "a.*?b: (1)", "replace": "a: 2\nb: \\1"}]
    await execute([entry("edit", {"value": "configmap/shop/flags", "changes": changes})], Tools())
    assert sent[1] == {"command": ["replace", "-n", "shop", "-f", "-"], "stdin": "a: 2\nb: 1\nc: 1\n"}


async def test_an_edit_writes_back_nothing_that_is_of_the_wall_clock():
    """Equal trials must leave equal evidence; the times of the object's own parts are texts like any other and stay."""
    sent = []
    text = (
        'kind: X\nmetadata:\n  creationTimestamp: "2026-01-01T00:00:00Z"\n  name: a\n'
        "spec:\n  template:\n    metadata:\n      creationTimestamp: null\n"
        'status:\n  conditions:\n  - lastHeartbeatTime: "2026-01-01T00:00:00Z"\n    type: Ready\n'
    )

    class Tools(FakeTools):
        async def call(self, name, arguments=None):
            sent.append(arguments)
            return ToolResult(text)

    await execute([entry("edit", {"value": "node/a", "changes": [{"find": "kind: X", "replace": "kind: Y"}]})], Tools())
    head = "kind: Y\nmetadata:\n  name: a\nspec:\n  template:\n"
    assert sent[1]["stdin"] == head + "    metadata:\n      creationTimestamp: null\n"


async def test_an_edit_that_matches_nothing_fails_and_replaces_nothing():
    """A script that did not do what it says shows nothing."""
    tools = FakeTools({"get": ToolResult("a: 1\n")})
    step = entry("edit", {"value": "node/node-1", "changes": [{"find": "b: 1", "replace": "b: 2"}]})
    with pytest.raises(AgentFailed, match="nothing in node/node-1 matches 'b: 1'"):
        await execute([step], tools)
    assert tools.calls == ["kubectl get node node-1 -o yaml"]
