"""Which tools a task has. The runner makes a trial's `Toolbox` here; a new tool is one line in `TOOLS`."""

from collections.abc import Iterable

from itbench.core.documents.task import Endpoints
from itbench.core.errors import UsageError
from itbench.tools.aws import AWS
from itbench.tools.basics import SUBMIT, WAIT
from itbench.tools.context import ToolContext
from itbench.tools.files import FILES
from itbench.tools.kubectl import KUBECTL, LOGS
from itbench.tools.registry import Tool, Toolbox
from itbench.tools.signals import ALERTS, PROMQL
from itbench.tools.sql import SQL

TOOLS: tuple[Tool, ...] = (KUBECTL, LOGS, PROMQL, ALERTS, AWS, SQL, FILES, WAIT, SUBMIT)
"""All tools, in the order in which agents see them."""

_ALWAYS = ("wait", "submit")


def available(endpoints: Endpoints) -> tuple[str, ...]:
    """Names of the tools that make sense with what this task's estate has."""
    there = {
        "kubectl": endpoints.kubeconfig,
        "logs": endpoints.kubeconfig,
        "promql": endpoints.prometheus_url,
        "alerts": endpoints.prometheus_url,
        "aws": endpoints.aws_endpoint_url,
        "sql": endpoints.databases,
        "files": endpoints.workspace,
    }
    return tuple(tool.name for tool in TOOLS if tool.name in _ALWAYS or there[tool.name])


def toolbox(context: ToolContext, names: Iterable[str] = ()) -> Toolbox:
    """The tools of one trial.

    Args:
        context: the trial.
        names: what the scenario asks for; empty means all that its estate can serve. `wait` and `submit` are always there.

    Raises:
        UsageError: a name that is no tool.
    """
    known = {tool.name: tool for tool in TOOLS}
    wanted = list(names) or list(available(context.endpoints))
    for name in wanted:
        if name not in known:
            raise UsageError("unknown tool", seen=name, expected=f"one of {', '.join(known)}")
    chosen = {*wanted, *_ALWAYS}
    return Toolbox([tool for tool in TOOLS if tool.name in chosen], context)
