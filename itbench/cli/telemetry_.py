"""Serve recorded telemetry in the foreground through the APIs of Prometheus and Loki: one ready line, clean stop on SIGTERM.

Files are OpenMetrics text with timestamps, or JSON lines {"timestamp", "labels", "line"} of logs (.jsonl, .ndjson); .gz of both.

examples:
  itbench telemetry incident.om
  itbench telemetry metrics.om logs.jsonl --rules alerts.yaml --port 9090
  itbench telemetry incident.om --as-if-now
"""

import argparse
import asyncio
import signal
import time
from pathlib import Path

from itbench.cli.common import bounded


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path, help="recorded metrics or logs")
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
    parser.add_argument("--as-if-now", action="store_true", help="move the recording in time so that it ends now")


def run(arguments: argparse.Namespace) -> int:
    """Serve until told to stop."""
    bounded("--port", arguments.port, 0, 65535)
    asyncio.run(_serve(arguments))
    return 0


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
