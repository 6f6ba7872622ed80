"""Serve recorded telemetry in the foreground through the APIs of Prometheus and Loki: one ready line, clean stop on SIGTERM.

Files are OpenMetrics text with timestamps, or JSON lines {"timestamp", "labels", "line"} of logs (.jsonl, .ndjson); .gz of both.
Or, with --test, run unit tests of rule files as `promtool test rules` does.

examples:
  itbench telemetry incident.om
  itbench telemetry metrics.om logs.jsonl --rules alerts.yaml --port 9090
  itbench telemetry incident.om --as-if-now
  itbench telemetry --test rules_test.yaml
"""

import argparse
import asyncio
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from itbench.cli.common import bounded
from itbench.core.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("files", nargs="*", metavar="FILE", type=Path, help="recorded metrics or logs")
    parser.add_argument(
        "--port",
        type=int,
        default=0,
        metavar="P",
        help="TCP port of the Prometheus API on the loopback (0: any free one)",
    )
    parser.add_argument(
        "--rules", action="append", default=[], metavar="FILE", type=Path, help="a rule file to evaluate (repeatable)"
    )
    parser.add_argument(
        "--test",
        action="append",
        default=[],
        metavar="FILE",
        type=Path,
        help="run the tests of rules in this file, and end",
    )
    parser.add_argument("--as-if-now", action="store_true", help="move the recording in time so that it ends now")


def run(arguments: argparse.Namespace) -> int:
    """Serve until told to stop."""
    bounded("--port", arguments.port, 0, 65535)
    if arguments.test:
        return _test(arguments.test)
    if not arguments.files:
        raise UsageError("no files to serve", expected="FILE..., or --test FILE")
    asyncio.run(_serve(arguments))
    return 0


def _test(paths: Sequence[Path]) -> int:
    """Run tests of rules; 1 where one fails."""
    from itbench.telemetry.rule_tests import run_tests

    code = 0
    for path in paths:
        failures = run_tests(path)
        print(f"{path}: {'FAILED' if failures else 'SUCCESS'}")
        for failure in failures:
            print(f"  {failure}".replace("\n", "\n  "))
        code = 1 if failures else code
    return code


async def _serve(arguments: argparse.Namespace) -> None:
    from itbench.stage.recorded import RecordedTelemetry
    from itbench.telemetry.recorded import RecordedClock, evaluate_rules, read_files, read_rules

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    groups = read_rules(arguments.rules)
    recording = read_files(arguments.files)
    rules = evaluate_rules(groups, recording.metrics)
    clock = RecordedClock(recording.end, time.time if arguments.as_if_now else None)
    servers = await RecordedTelemetry.open(recording, rules, clock, arguments.port)
    try:
        print(f"ready: {' '.join(f'{name}={url}' for name, url in servers.urls.items())}", flush=True)
        await stop.wait()
    finally:
        await servers.close()
