"""Leave a broken estate running, to play with: prints the page, KUBECONFIG and addresses, and how to end it.

Whoever exports what is printed may use `itbench tool` and hand an answer in with `itbench submit`, as an agent does. With
`--wait` the command stays until then and prints the verdict: a person is the agent.

examples:
  itbench up sre-12
  itbench up sre-12 --wait
  itbench up sre-1 --clock scaled:10
"""

import argparse
from typing import Any

from itbench.cli.common import add_json, add_library, bounded, clock, dump, library, table
from itbench.core.documents.base import MAX_SEED
from itbench.run.estates import Estate, await_verdict, start
from itbench.run.home import ready_cache
from itbench.run.jobs import Job

SHOWN = {
    "kubeconfig": "KUBECONFIG",
    "prometheus_url": "PROMETHEUS_URL",
    "alertmanager_url": "ALERTMANAGER_URL",
    "loki_url": "LOKI_URL",
    "jaeger_url": "JAEGER_URL",
    "aws_endpoint_url": "AWS_ENDPOINT_URL",
    "tools_url": "ITBENCH_TOOLS_URL",
    "tools_token": "ITBENCH_TOOLS_TOKEN",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("id", help="scenario id, as `itbench list` shows it")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the estate (default 0: as written)")
    parser.add_argument("--clock", default="live", help="live, scaled:N or stepped:S")
    parser.add_argument("--wait", action="store_true", help="wait for the answer, grade it, and end the estate")
    add_library(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Start the estate and print where it is."""
    ready_cache()
    library(arguments).scenario(arguments.id)
    job = Job(
        scenario=arguments.id,
        agent="nop",
        seed=bounded("--seed", arguments.seed, 0, MAX_SEED),
        clock=clock(arguments.clock),
        library=tuple(arguments.library),
    )
    estate, found = start(job)
    endpoints = found["endpoints"]
    if arguments.json:
        print(dump({"name": estate.folder.name, "pid": estate.pid} | found), flush=True)
    else:
        _show(found["page"], endpoints)
    if arguments.wait:
        return _judge(estate, as_json=arguments.json)
    if not arguments.json:
        print(f"\nEnd it with: itbench down {estate.folder.name}")
    return 0


def _show(page: str, endpoints: dict[str, Any]) -> None:
    print(page)
    for field, variable in SHOWN.items():
        if endpoints.get(field):
            print(f"export {variable}={endpoints[field]}")
    for variable, value in endpoints.get("aws_env", {}).items():
        print(f"export {variable}={value}")
    for name, path in endpoints.get("databases", {}).items():
        print(f"# database {name}: {path}")
    if endpoints.get("workspace"):
        print(f"# workspace: {endpoints['workspace']}")
    print("# hand in an answer with: itbench submit FILE (its form: itbench task)", flush=True)


def _judge(estate: Estate, *, as_json: bool) -> int:
    """Wait for the verdict, print it, and end the estate whatever happens."""
    try:
        result = await_verdict(estate)
    finally:
        estate.end()
    if as_json:
        print(dump(result))
        return 0
    cause = "" if result["cause"] == "checks" else f"{result['cause']} {result['detail']}"
    print(f"\n{result['outcome'].upper()} {cause}".rstrip())
    rows = [("held" if check["passed"] else "missed", check["name"], check["seen"]) for check in result["checks"]]
    print(table(rows, ("CHECK", "NAME", "SEEN")))
    return 0
