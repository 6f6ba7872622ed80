"""Typed steps of repairs and decoys, and their execution through the tools that every agent has.

The library receives `STEPS` to validate scenario files; `oracle` and `decoy` run them.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, RootModel

from itbench.agents.base import AgentFailed
from itbench.core.documents.base import Document, Duration, parse
from itbench.core.documents.scenario import Entry
from itbench.core.errors import ScenarioDefect
from itbench.library.vocabulary import spec_mapping
from itbench.tools.basics import MAX_WAIT_S
from itbench.tools.registry import ToolResult, Tools

WHOLE = 2_000_000
"""Characters of output that are never cut."""
Command = Annotated[str | tuple[str, ...], Field(validation_alias=AliasChoices("value", "command"), min_length=1)]
"""A command line, or its words."""


class Kubectl(Document):
    """`kubectl: "scale deploy/checkout -n shop --replicas=3"`, or `{command, stdin, may_fail, save}`.

    `save: NAME` keeps what the command printed; `{saved.NAME}` in a later command stands for it.
    """

    value: Command
    stdin: str = ""
    may_fail: bool = False
    save: str = ""


class Change(Document):
    """One change of a text: `find` is a regular expression in which a dot matches line ends too, `replace` its replacement."""

    find: Annotated[str, Field(min_length=1)]
    replace: str


class Edit(Document):
    """`edit: {value: configmap/shop/flagd-config, changes: [{find, replace}]}`: what a person does with `kubectl edit`.

    The object is read as YAML, each change is made where it matches first, and the result replaces the object.
    `{saved.NAME}` in a replacement stands for what a command printed.
    """

    value: Annotated[str, Field(pattern=r"^[^/]+/([^/]+/)?[^/]+$")]
    changes: Annotated[tuple[Change, ...], Field(min_length=1)]


class Aws(Document):
    """`aws: "ec2 delete-volume --volume-id vol-1"`, or `{command, may_fail}`."""

    value: Command
    may_fail: bool = False


class Wait(Document):
    """`wait: 2m` of world time."""

    value: Annotated[Duration, Field(gt=0)]


class File(Document):
    """`file: {path: policy.rego, content: ...}` in the workspace."""

    path: str = Field(min_length=1)
    content: str


class Answer(RootModel[dict[str, Any]]):
    """`answer: {...}`: keys of the submission's `answer`."""

    model_config = ConfigDict(frozen=True)


STEPS: Mapping[str, type[BaseModel]] = {
    "kubectl": Kubectl,
    "edit": Edit,
    "aws": Aws,
    "wait": Wait,
    "file": File,
    "answer": Answer,
}
"""The kinds of steps and their models."""


def parse_step(entry: Entry) -> BaseModel:
    """A step as its typed model.

    Raises:
        ScenarioDefect: an unknown kind, or a specification that does not fit it.
    """
    model = STEPS.get(entry.kind)
    if model is None:
        raise ScenarioDefect("unknown step", seen=entry.kind, expected=f"one of {', '.join(STEPS)}")
    return parse(model, spec_mapping(entry.spec, model), file=f"step {entry.kind}")


async def execute(entries: Iterable[Entry], tools: Tools) -> dict[str, Any]:
    """Carry out steps in order.

    Args:
        entries: the steps.
        tools: through which they act.

    Returns:
        What `answer` steps gave, merged.

    Raises:
        AgentFailed: a step that must succeed did not; the text shows the tool's own.
    """
    answer: dict[str, Any] = {}
    saved: dict[str, str] = {}
    for number, entry in enumerate(entries, 1):
        step = parse_step(entry)
        if isinstance(step, Kubectl):
            step = step.model_copy(update={"value": _filled(step.value, saved)})
        elif isinstance(step, Edit):
            changes = [Change(find=each.find, replace=str(_filled(each.replace, saved))) for each in step.changes]
            step = step.model_copy(update={"changes": tuple(changes)})
        if isinstance(step, Answer):
            answer |= step.root
            continue
        result = await _ACT[type(step)](step, tools)
        if not result.ok and not getattr(step, "may_fail", False):
            raise AgentFailed(f"step {number} ({entry.kind} {_shown(step)}) failed: {result.text[:500]}")
        if isinstance(step, Kubectl) and step.save:
            saved[step.save] = result.text.strip()
    return answer


def _filled(value: str | tuple[str, ...], saved: Mapping[str, str]) -> str | tuple[str, ...]:
    if not isinstance(value, str):
        return tuple(str(_filled(word, saved)) for word in value)
    for name, text in saved.items():
        value = value.replace(f"{{saved.{name}}}", text)
    return value


def _shown(step: BaseModel) -> str:
    text = str(getattr(step, "value", "") or getattr(step, "path", ""))
    return text if len(text) <= 120 else text[:117] + "..."


def _words(value: str | tuple[str, ...]) -> str | list[str]:
    return value if isinstance(value, str) else list(value)


async def _kubectl(step: Kubectl, tools: Tools) -> ToolResult:
    stdin = {"stdin": step.stdin} if step.stdin else {}
    return await tools.call("kubectl", {"command": _words(step.value)} | stdin)


_SERVERS = re.compile(r"^  creationTimestamp: .*\n|^status:\n(?:[ -].*\n?)*", re.MULTILINE)
"""What only the server says of an object: left out when it is written back, for its times are those of the wall."""


async def _edit(step: Edit, tools: Tools) -> ToolResult:
    kind, *namespace, name = step.value.split("/")
    place = ["-n", namespace[0]] if namespace else []
    read = await tools.call("kubectl", {"command": ["get", kind, name, *place, "-o", "yaml"], "limit": WHOLE})
    if not read.ok:
        return read
    text = read.text
    for change in step.changes:
        text, made = re.subn(change.find, change.replace, text, count=1, flags=re.DOTALL)
        if not made:
            return ToolResult(f"nothing in {step.value} matches {change.find!r}", ok=False)
    return await tools.call("kubectl", {"command": ["replace", *place, "-f", "-"], "stdin": _SERVERS.sub("", text)})


async def _aws(step: Aws, tools: Tools) -> ToolResult:
    return await tools.call("aws", {"command": _words(step.value)})


async def _wait(step: Wait, tools: Tools) -> ToolResult:
    left, result = step.value, ToolResult("")
    while left > 0 and result.ok:
        result = await tools.call("wait", {"seconds": min(left, MAX_WAIT_S)})
        left -= MAX_WAIT_S
    return result


async def _file(step: File, tools: Tools) -> ToolResult:
    return await tools.call("files", {"action": "write", "path": step.path, "content": step.content})


_ACT: dict[type[BaseModel], Callable[[Any, Tools], Awaitable[ToolResult]]] = {
    Kubectl: _kubectl,
    Edit: _edit,
    Aws: _aws,
    Wait: _wait,
    File: _file,
}
