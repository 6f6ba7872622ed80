"""Prove scenarios: is the baseline silent, does the symptom appear, does doing nothing fail, does every repair pass, does every
decoy fail by the check it names, does revert restore? Exit code 1 when a claim does not hold.

examples:
  itbench prove sre-12
  itbench prove all --seeds 0 -j 2
  itbench prove sre-12 --claim revert --claim "decoy 4"
  itbench prove --domain finops --json
"""

import argparse
import asyncio
import contextlib
import time

from itbench.cli.common import add_json, add_library, bounded, dump, library, select, table
from itbench.cli.progress import Progress
from itbench.core.documents.base import MAX_SEED
from itbench.core.errors import UsageError
from itbench.run.forge import Forge
from itbench.run.home import ready_cache
from itbench.run.jobs import Job, driver_module
from itbench.run.pool import run_job, run_jobs
from itbench.run.prove import Claim, Shown, claims, judge, narrowed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("ids", nargs="*", help="scenario ids, or `all`")
    parser.add_argument("--domain", default="", help="only this domain")
    parser.add_argument("--seeds", default="0", metavar="N,…", help="seeds of the estate, by commas (default 0)")
    parser.add_argument(
        "--claim", action="append", default=[], metavar="TEXT", help="only claims that contain this text (repeatable)"
    )
    parser.add_argument("--fresh", action="store_true", help="stage anew instead of using checkpoints")
    parser.add_argument("--failed", action="store_true", help="print only what does not hold")
    parser.add_argument("-j", "--jobs", type=int, default=2, metavar="N", help="trials at once")
    add_library(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prove, print the table, give the exit code."""
    ready_cache()
    where = library(arguments)
    ids = select(where, arguments.ids, domain=arguments.domain)
    try:
        seeds = [bounded("--seeds", int(text), 0, MAX_SEED) for text in arguments.seeds.split(",")]
    except ValueError:
        raise UsageError(
            "--seeds is not a list of numbers", seen=arguments.seeds, expected="for example 0,1,2"
        ) from None
    every = [
        claims(where.scenario(identifier).scenario, seed, tuple(arguments.library), fresh=arguments.fresh)
        for identifier in ids
        for seed in seeds
    ]
    todo = [group for group in (narrowed(group, arguments.claim) for group in every) if group]
    if not todo:
        raise UsageError("no claim contains --claim", seen=arguments.claim, expected="for example revert, or repair 1")
    start = time.monotonic()
    with contextlib.closing(Forge.take()) as forge:
        forge.expect(*sorted({driver_module(where.scenario(name).scenario.environment) for name in ids}), many=True)
        shown = asyncio.run(_show(todo, arguments, forge))
    bad = [item for item in shown if not item.held]
    if arguments.json:
        print(dump([_row(item) for item in shown]))
    else:
        rows = [_cells(item) for item in (bad if arguments.failed else shown)]
        print(table(rows, ("SCENARIO", "SEED", "CLAIM", "HOLDS", "SEEN")))
        print(f"{len(shown) - len(bad)} of {len(shown)} claims hold; {time.monotonic() - start:.0f} s")
    return 1 if bad else 0


def _row(item: Shown) -> dict[str, object]:
    claim = item.claim
    return {
        "scenario": claim.scenario,
        "seed": claim.job.seed,
        "claim": claim.what,
        "held": item.held,
        "seen": item.seen,
    }


def _cells(item: Shown) -> tuple[str, ...]:
    claim = item.claim
    wanted = claim.what + (f" -> {claim.caught_by}" if claim.caught_by else "")
    return (claim.scenario, str(claim.job.seed), wanted[:90], "yes" if item.held else "NO", item.seen[:110])


async def _show(todo: list[list[Claim]], arguments: argparse.Namespace, forge: Forge) -> list[Shown]:
    """The first claim of each scenario stages it; the others start from that checkpoint."""
    progress = Progress(sum(map(len, todo)), json_lines=False)
    shown: dict[int, Shown] = {}
    slots = asyncio.Semaphore(arguments.jobs)

    async def first(group: list[Claim]) -> None:
        async with slots:
            outcome = await run_job(group[0].job, progress, forge)
        shown[id(group[0])] = judge(group[0], outcome)
        progress.finished(f"{group[0].scenario}: {group[0].what}: {shown[id(group[0])].seen}")

    await asyncio.gather(*(first(group) for group in todo))
    by_job: dict[Job, Claim] = {claim.job: claim for group in todo for claim in group[1:]}
    async with contextlib.aclosing(run_jobs(by_job, arguments.jobs, progress, forge)) as outcomes:
        async for outcome in outcomes:
            claim = by_job[outcome.job]
            shown[id(claim)] = judge(claim, outcome)
            progress.finished(f"{claim.scenario}: {claim.what}: {shown[id(claim)].seen}")
    return [shown[id(claim)] for group in todo for claim in group]
