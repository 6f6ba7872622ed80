"""Run scenarios: stand up, break, hand over, grade, report.

examples:
  itbench run sre-12                                  the reference repair
  itbench run sre-1 --agent ./fix.sh --trials 3
  itbench run --suite sre --agent nop --agent heuristic -j 2 --out runs/first
  itbench run --resume runs/first
"""

import argparse
import asyncio
import contextlib
import importlib
import math
from pathlib import Path

from itbench.cli.common import add_json, add_library, bounded, clock, library, select
from itbench.cli.progress import Progress
from itbench.cli.summary import announce, summarize
from itbench.core.causes import rule
from itbench.core.documents.base import MAX_SEED, MAX_TRIALS
from itbench.core.documents.result import RunDocument
from itbench.core.documents.scenario import Scenario
from itbench.core.errors import UsageError
from itbench.run.files import locked
from itbench.run.forge import Forge
from itbench.run.home import ready_cache
from itbench.run.jobs import Job, driver_module
from itbench.run.known import check_agent
from itbench.run.pool import run_jobs
from itbench.run.runs import Run, create, default_folder, resume, unchanged

AGENT_HELP = (
    "nop, oracle[:N], decoy:N, saboteur, constant, heuristic, module:function, file.py:function, or a command "
    "(repeatable; default: the reference repair)"
)
CLOCK_HELP = "live, scaled:N or stepped:S; auto: stepped:5 for scripted built-in agents, else live"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    what = parser.add_argument_group("what to run")
    what.add_argument("ids", nargs="*", help="scenario ids, or `all`")
    what.add_argument("--suite", default="", help="a suite: sre, ciso, finops, or a file of suites/")
    what.add_argument("--domain", default="", help="only this domain")
    what.add_argument("--tag", action="append", default=[], help="only scenarios with this tag (repeatable)")
    what.add_argument("--agent", action="append", default=[], metavar="A", help=AGENT_HELP)
    what.add_argument("--trials", type=int, default=1, metavar="N", help="trials per scenario and agent")
    what.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the estate (default 0: as written)")
    what.add_argument(
        "--task", action="append", default=[], metavar="ANSWER", help="narrow, e.g. to mitigation (repeatable)"
    )
    _add_manner(parser.add_argument_group("how"))
    add_library(parser)
    add_json(parser)


def _add_manner(how: argparse._ArgumentGroup) -> None:
    how.add_argument("--clock", default="auto", help=CLOCK_HELP)
    how.add_argument("--environment", default="embedded", choices=("embedded", "attached", "live"))
    how.add_argument("--kubeconfig", default="", metavar="F", help="for attached and live")
    how.add_argument("--isolation", default="auto", choices=("auto", "landlock", "none"))
    how.add_argument(
        "--agent-dir", action="append", default=[], metavar="D", help="a folder that the agent may read (repeatable)"
    )
    how.add_argument("--timeout", type=float, default=None, metavar="S", help="wall seconds that an agent may take")
    how.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="trials at once")
    how.add_argument("--out", default="", metavar="DIR", help="folder of the run (default runs/<time>-<what>)")
    how.add_argument("--resume", default="", metavar="DIR", help="go on with a run")
    how.add_argument(
        "--fail-under", type=float, default=None, metavar="X", help="exit 1 when pass@1 of an agent is below X"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run all trials; returns the exit code."""
    _check_numbers(arguments)
    ready_cache()
    todo = _resumed(arguments) if arguments.resume else _new(arguments)
    with locked(todo.folder.path):
        jobs = todo.jobs(str(Path.cwd()))
        announce(todo, len(jobs), arguments)
        errors = asyncio.run(_perform(jobs, _drivers(todo), arguments))
        return summarize(todo, errors, arguments)


def _drivers(todo: Run) -> list[str]:
    """What carries the trials out, so that it is there before the first begins."""
    where = library(argparse.Namespace(library=todo.document.library))
    return sorted({driver_module(where.scenario(name).scenario.environment) for name in todo.document.scenarios})


def _check_numbers(arguments: argparse.Namespace) -> None:
    bounded("--trials", arguments.trials, 1, MAX_TRIALS)
    bounded("--jobs", arguments.jobs, 1, MAX_TRIALS)
    bounded("--seed", arguments.seed, 0, MAX_SEED)
    if arguments.timeout is not None and not 0 < arguments.timeout < math.inf:
        raise UsageError("--timeout is no time", seen=arguments.timeout, expected="wall seconds, more than 0")
    if arguments.fail_under is not None and not 0 <= arguments.fail_under <= 1:
        raise UsageError("--fail-under is no share", seen=arguments.fail_under, expected="a number from 0 to 1")


def _resumed(arguments: argparse.Namespace) -> Run:
    if arguments.ids or arguments.agent or arguments.out or arguments.suite:
        raise UsageError("--resume goes on with what the run says", hint="leave out ids, --suite, --agent and --out")
    todo = resume(Path(arguments.resume))
    unchanged(todo, library(argparse.Namespace(library=todo.document.library)))
    return todo


def _new(arguments: argparse.Namespace) -> Run:
    document = _document(arguments)
    folder = Path(arguments.out) if arguments.out else default_folder(document.scenarios)
    return create(document, folder, library(arguments))


def _document(arguments: argparse.Namespace) -> RunDocument:
    where = library(arguments)
    ids = select(where, arguments.ids, domain=arguments.domain, tags=arguments.tag, suite=arguments.suite)
    agents = tuple(arguments.agent) or ("oracle",)
    for agent in agents:
        for identifier in ids:
            check_agent(agent, where.scenario(identifier).scenario)
    _check_task(arguments.task, [where.scenario(identifier).scenario for identifier in ids])
    _check_folders(arguments)
    return RunDocument(
        scenarios=tuple(ids),
        agents=tuple(dict.fromkeys(agents)),
        trials=arguments.trials,
        seed=arguments.seed,
        clock=clock(arguments.clock),
        environment=arguments.environment,
        isolation=arguments.isolation,
        task=tuple(arguments.task),
        kubeconfig=str(Path(arguments.kubeconfig).resolve()) if arguments.kubeconfig else "",
        timeout_s=arguments.timeout,
        agent_dirs=tuple(str(Path(folder).resolve()) for folder in arguments.agent_dir),
        library=tuple(str(Path(path).resolve()) for path in arguments.library),
    )


def _check_task(answers: list[str], scenarios: list[Scenario]) -> None:
    for answer in answers:
        for scenario in scenarios:
            if answer not in scenario.task.answers:
                asked = ", ".join(scenario.task.answers)
                raise UsageError(f"{scenario.id} does not ask for --task", seen=answer, expected=f"one of {asked}")


def _check_folders(arguments: argparse.Namespace) -> None:
    for option, place in [("--agent-dir", place) for place in arguments.agent_dir]:
        if not Path(place).is_dir():
            raise UsageError(f"{option}: no such folder", seen=place, expected="an existing folder")
    if arguments.kubeconfig and not Path(arguments.kubeconfig).is_file():
        raise UsageError("--kubeconfig: no such file", seen=arguments.kubeconfig, expected="a kubeconfig file")
    if arguments.environment != "embedded":
        seen = arguments.environment
        raise UsageError("this environment is not available in this version", seen=seen, expected="embedded")


async def _perform(jobs: list[Job], drivers: list[str], arguments: argparse.Namespace) -> list[tuple[str, int]]:
    """Run the jobs; returns a line and an exit code for every trial that could not be run, and for a wrong request."""
    progress = Progress(len(jobs), json_lines=arguments.json)
    errors = []
    with contextlib.closing(Forge.take()) as forge:
        forge.expect(*drivers, many=len(jobs) > 1)
        views = asyncio.create_task(
            asyncio.to_thread(importlib.import_module, "itbench.run.views")
        )  # needed at the end
        async with contextlib.aclosing(run_jobs(jobs, arguments.jobs, progress, forge)) as outcomes:
            async for outcome in outcomes:
                if outcome.result is None:
                    errors.append((f"{outcome.job.label}: {outcome.error}", outcome.exit_code))
                    progress.finished(errors[-1][0])
                else:
                    result = outcome.result
                    why = f" ({result['cause']}: {result['detail']})" if result["cause"] != "checks" else ""
                    progress.finished(f"{outcome.job.label}: {result['outcome'].upper()}{why}")
                    if rule(result["cause"]).aborts:
                        errors.append((f"{outcome.job.label}: {result['cause']}: {result['detail']}", 2))
                        break
        await views
    return errors
