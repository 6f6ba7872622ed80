"""Leave a broken estate running, to play with: prints the page, KUBECONFIG and addresses, and how to end it.

examples:
  itbench up sre-12
  itbench up sre-1 --clock scaled:10
"""

import argparse

from itbench.cli.common import add_json, add_library, dump, library
from itbench.run.estates import start
from itbench.run.jobs import Job

SHOWN = {
    "kubeconfig": "KUBECONFIG",
    "prometheus_url": "PROMETHEUS_URL",
    "alertmanager_url": "ALERTMANAGER_URL",
    "loki_url": "LOKI_URL",
    "jaeger_url": "JAEGER_URL",
    "aws_endpoint_url": "AWS_ENDPOINT_URL",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("id", help="scenario id, as `itbench list` shows it")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the estate (default 0: as written)")
    parser.add_argument("--clock", default="live", help="live, scaled:N or stepped:S")
    add_library(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Start the estate and print where it is."""
    library(arguments).scenario(arguments.id)
    job = Job(
        scenario=arguments.id, agent="nop", seed=arguments.seed, clock=arguments.clock, library=tuple(arguments.library)
    )
    estate, found = start(job)
    endpoints = found["endpoints"]
    if arguments.json:
        print(dump({"name": estate.folder.name, "pid": estate.pid} | found))
        return 0
    print(found["page"])
    for field, variable in SHOWN.items():
        if endpoints.get(field):
            print(f"export {variable}={endpoints[field]}")
    for variable, value in endpoints.get("aws_env", {}).items():
        print(f"export {variable}={value}")
    for name, path in endpoints.get("databases", {}).items():
        print(f"# database {name}: {path}")
    print(f"\nEnd it with: itbench down {estate.folder.name}")
    return 0
