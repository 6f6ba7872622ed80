"""Show what a scenario is, without its truth.

examples:
  itbench show sre-12
  itbench show sre-12 --json
"""

import argparse

from itbench.cli.common import add_json, add_library, dump, library

SEALED = ("truth", "repairs", "decoys", "faults", "noise", "checks", "allow", "notes")
"""What would give the answer away."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("id", help="scenario id, as `itbench list` shows it")
    add_library(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the open part of the document."""
    scenario = library(arguments).scenario(arguments.id).scenario
    data = {key: value for key, value in scenario.model_dump(mode="json", by_alias=True).items() if key not in SEALED}
    if arguments.json:
        print(dump(data))
        return 0
    environment = scenario.environment
    print(f"{scenario.id}  {scenario.title}")
    print(f"domain {scenario.domain}, family {scenario.family}, level {scenario.level}")
    print(f"source: {scenario.source.what}")
    if environment.app:
        print(f"estate: {environment.app.id} on {environment.nodes} nodes")
    if environment.aws:
        print(f"estate: AWS account {environment.aws.estate}")
    limits = scenario.task.limits
    print(
        f"answers: {', '.join(scenario.task.answers)}; limits: {limits.time / 60:g} min of world time, {limits.steps} steps"
    )
    print(f"checks: {', '.join(sorted({entry.kind for entry in scenario.checks}))}")
    print(f"\n{scenario.page.rstrip()}")
    return 0
