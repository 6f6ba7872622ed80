"""Serve an empty embedded cluster in the foreground: DIR/kubeconfig, one ready line, clean stop on SIGTERM or Ctrl-C.

examples:
  itbench kube --dir /tmp/k
  itbench kube --dir /tmp/k --nodes 3 --clock scaled:10
  itbench kube --dir /tmp/k --api metrics.k8s.io --api chaos-mesh.org
"""

import argparse
import asyncio
import signal
from pathlib import Path

from itbench.core.errors import UsageError
from itbench.kube.resources import ADDONS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument(
        "--dir", required=True, metavar="DIR", help="folder for the kubeconfig; made when it is missing"
    )
    parser.add_argument("--nodes", type=int, default=1, metavar="N", help="nodes of the cluster (0: pods stay pending)")
    parser.add_argument("--port", type=int, default=0, metavar="P", help="TCP port on the loopback (0: any free one)")
    parser.add_argument(
        "--allow-webhook-host",
        action="append",
        default=[],
        metavar="HOST[:PORT]",
        help="a real host that admission webhooks may live on (repeat for more); calls to others time out",
    )
    parser.add_argument(
        "--api",
        action="append",
        default=[],
        choices=ADDONS,
        help="serve an API that a new cluster does not have (repeat for more)",
    )
    parser.add_argument("--clock", default="live", help="live or scaled:N")


def run(arguments: argparse.Namespace) -> int:
    """Serve until told to stop."""
    if not 0 <= arguments.nodes <= 1000:
        raise UsageError("--nodes is out of range", seen=arguments.nodes, expected="0 to 1000")
    asyncio.run(_serve(arguments))
    return 0


async def _serve(arguments: argparse.Namespace) -> None:
    from itbench.kube.api import serve
    from itbench.stage.embedded import parse_clock
    from itbench.world.estate import World
    from itbench.world.pace import WorldPacer

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    world = World.create(None, seed=0, nodes=arguments.nodes)
    plane = world.planes["main"]
    plane.registry.table.conceal(set(ADDONS) - set(arguments.api))
    if "metrics.k8s.io" not in arguments.api:
        plane.metrics = None
    pacer = WorldPacer(world, **parse_clock(arguments.clock))
    file = Path(arguments.dir) / "kubeconfig"
    hosts = arguments.allow_webhook_host
    server = await serve(plane, pacer, world.door("main"), port=arguments.port, webhook_hosts=hosts)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.write_text(server.kubeconfig("admin"))
        print(f"ready: {server.url} KUBECONFIG={file.resolve()}", flush=True)
        await stop.wait()
    finally:
        file.unlink(missing_ok=True)
        await server.close()
