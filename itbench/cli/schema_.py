"""Print the JSON Schema of a kind of document.

examples:
  itbench schema
  itbench schema scenario > scenario.schema.json
"""

import argparse
import importlib

from itbench.cli.common import dump

DOCUMENTS = {
    "scenario": ("itbench.core.documents.scenario", "Scenario"),
    "fault": ("itbench.core.documents.fault", "Fault"),
    "app": ("itbench.core.documents.app", "App"),
    "metric": ("itbench.core.documents.metric", "MetricCard"),
    "suite": ("itbench.library.suites", "Suite"),
    "task": ("itbench.core.documents.task", "Task"),
    "submission": ("itbench.core.documents.task", "Submission"),
    "run": ("itbench.core.documents.result", "RunDocument"),
    "lock": ("itbench.core.documents.result", "Lock"),
    "evidence": ("itbench.core.documents.result", "Evidence"),
    "result": ("itbench.core.documents.result", "Result"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument(
        "kind", nargs="?", choices=sorted(DOCUMENTS), help="kind of document; without it the kinds are listed"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the schema, or the kinds."""
    if arguments.kind is None:
        print("\n".join(DOCUMENTS))
        return 0
    module, name = DOCUMENTS[arguments.kind]
    model = getattr(importlib.import_module(module), name)
    print(dump({"$schema": "https://json-schema.org/draft/2020-12/schema"} | model.model_json_schema(by_alias=True)))
    return 0
