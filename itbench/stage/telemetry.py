"""The telemetry servers of an embedded estate: Prometheus, Alertmanager and Loki APIs on free ports. Used by `embedded`."""

from typing import cast

from aiohttp import web

from itbench.telemetry.alertmanager import Silences, alertmanager_app
from itbench.telemetry.http import prometheus_app
from itbench.telemetry.logs import LogSource
from itbench.telemetry.loki import loki_app
from itbench.world.estate import World
from itbench.world.pace import WorldPacer


class Telemetry:
    """Running servers; make them with `open`."""

    def __init__(self, runners: dict[str, web.AppRunner]) -> None:
        self._runners = runners

    @classmethod
    async def open(cls, world: World, pacer: WorldPacer, plane: str, silences: Silences) -> "Telemetry":
        """Start a server for each API that the world feeds.

        Every request counts as one from outside: the pacer itself leaves out those that a tool makes inside its bracket.
        """
        telemetry = cls({})
        await telemetry._serve("alertmanager", alertmanager_app(world.rules, silences, pacer))
        told = telemetry.alertmanager_url
        await telemetry._serve("prometheus", prometheus_app(world.metrics, world.rules, pacer, alertmanager_url=told))
        await telemetry._serve("loki", loki_app(cast(LogSource, world.door(plane)), pacer))
        return telemetry

    async def _serve(self, name: str, app: web.Application) -> None:
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
        self._runners[name] = runner
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()

    def _port(self, name: str) -> int:
        return int(self._runners[name].addresses[0][1])

    @property
    def ports(self) -> tuple[int, ...]:
        """Ports of all servers."""
        return tuple(self._port(name) for name in self._runners)

    @property
    def prometheus_url(self) -> str:
        """Base URL of the Prometheus API."""
        return f"http://127.0.0.1:{self._port('prometheus')}"

    @property
    def alertmanager_url(self) -> str:
        """Base URL of the Alertmanager API."""
        return f"http://127.0.0.1:{self._port('alertmanager')}"

    @property
    def loki_url(self) -> str:
        """Base URL of the Loki API."""
        return f"http://127.0.0.1:{self._port('loki')}"

    async def close(self) -> None:
        """End all servers."""
        for runner in self._runners.values():
            await runner.cleanup()
