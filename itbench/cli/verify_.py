"""Check a bundle: is it whole, is every result what its evidence says, do the parts of each trial agree?

Every trial is graded again by the scenarios of this installation. With `--replay N`, N trials drawn by `--seed` are done again,
call by call, in a fresh estate: on the stepped clock the evidence must be the same byte for byte. Trials on a live clock cannot
be replayed.

exit codes: 0 sound; 1 something is wrong; 2 no bundle at all

examples:
  itbench verify first.zip
  itbench verify first.zip --replay 3 -j 2
"""

import argparse
import asyncio
import contextlib
import json
import random
import tempfile
from pathlib import Path

from itbench.cli.common import add_json, add_library, bounded, library
from itbench.core.documents.base import MAX_SEED, MAX_TRIALS, load
from itbench.core.documents.result import Result, RunDocument
from itbench.run.bundles import opened, problems, same_evidence
from itbench.run.files import RunFolder, TrialFolder
from itbench.run.forge import Forge
from itbench.run.jobs import Job
from itbench.run.pool import run_jobs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("bundle", help="a file that `itbench bundle` wrote")
    parser.add_argument("--replay", type=int, default=0, metavar="N", help="do N trials again (default: none)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="draws the trials that are done again")
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="trials at once")
    add_library(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what is wrong, a line each, and the verdict."""
    bounded("--replay", arguments.replay, 0, MAX_TRIALS)
    bounded("--jobs", arguments.jobs, 1, MAX_TRIALS)
    bounded("--seed", arguments.seed, 0, MAX_SEED)
    with opened(Path(arguments.bundle)) as bundle:
        wrong = [*bundle.problems, *problems(bundle.run, library(arguments))]
        trials = list(RunFolder(bundle.run).trials())
        replayed, unlike = (0, []) if wrong else _replay(bundle.run, trials, arguments)
        wrong += unlike
    facts = {"trials": len(trials), "replayed": replayed, "problems": wrong}
    if arguments.json:
        print(json.dumps({"type": "verify", "sound": not wrong, **facts}))
    else:
        for text in wrong:
            print(text)
        done = f", {replayed} done again with the same evidence" if replayed and not wrong else ""
        print(
            f"{len(wrong)} problems"
            if wrong
            else f"sound: {len(trials)} trials graded again with the same results{done}"
        )
    return 1 if wrong else 0


def _can_be_done_again(result: Result) -> bool:
    return result.clock.startswith("stepped") and result.cause in ("checks", "no_submission")


def _replay(run_: Path, trials: list[TrialFolder], arguments: argparse.Namespace) -> tuple[int, list[str]]:
    """How many trials were done again, and those whose evidence came out different."""
    able = [trial for trial in trials if _can_be_done_again(trial.read_result())]
    chosen = random.Random(arguments.seed).sample(able, min(arguments.replay, len(able)))
    if not chosen:
        return 0, []
    document = load(RunDocument, run_ / "run.yaml")
    with tempfile.TemporaryDirectory(prefix="itbench-replay-") as home:
        places = {
            str(Path(home) / "run" / "trials" / "a" / "b" / str(number)): each for number, each in enumerate(chosen, 1)
        }
        jobs = [_job(trial, folder, document, arguments) for folder, trial in places.items()]
        return len(chosen), asyncio.run(_compare(jobs, places, arguments.jobs))


def _job(trial: TrialFolder, folder: str, document: RunDocument, arguments: argparse.Namespace) -> Job:
    result = trial.read_result()
    return Job(
        scenario=result.scenario,
        agent=f"replay:{trial.path}",
        trial=result.trial,
        seed=result.seed,
        clock=result.clock,
        answers=document.task,
        library=tuple(str(Path(path).resolve()) for path in arguments.library),
        folder=folder,
        cwd=str(Path.cwd()),
    )


async def _compare(jobs: list[Job], places: dict[str, TrialFolder], workers: int) -> list[str]:
    wrong = []
    with contextlib.closing(Forge.take()) as forge:
        async with contextlib.aclosing(run_jobs(jobs, workers, forge=forge)) as outcomes:
            async for outcome in outcomes:
                trial = places[outcome.job.folder]
                name = str(trial.path.relative_to(trial.path.parents[3]))
                if outcome.result is None:
                    wrong.append(f"{name}: cannot be done again: {outcome.error}")
                elif other := same_evidence(trial, TrialFolder(Path(outcome.job.folder))):
                    wrong.append(f"{name}: done again, the evidence is another: {', '.join(other)}")
    return sorted(wrong)
