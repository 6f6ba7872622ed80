"""Servers for recorded telemetry: the APIs for which the files hold anything. Used by `itbench telemetry`."""

from aiohttp import web

from itbench.core.errors import EnvironmentFault
from itbench.core.ids import Ids
from itbench.telemetry.alertmanager import Silences, alertmanager_app
from itbench.telemetry.http import prometheus_app
from itbench.telemetry.loki import loki_app
from itbench.telemetry.recorded import RecordedClock, Recording
from itbench.telemetry.rules import RuleEngine


class RecordedTelemetry:
    """Running servers; make them with `open`.

    Attributes:
        urls: `PROMETHEUS_URL`, and `LOKI_URL` and `ALERTMANAGER_URL` where there are logs and rules.
    """

    def __init__(self) -> None:
        self.urls: dict[str, str] = {}
        self._runners: list[web.AppRunner] = []

    @classmethod
    async def open(
        cls, recording: Recording, rules: RuleEngine, clock: RecordedClock, port: int = 0
    ) -> "RecordedTelemetry":
        """Start the servers on the loopback.

        Args:
            recording, rules, clock: what they serve.
            port: of the Prometheus API; 0 takes any free one, as the others do.

        Raises:
            EnvironmentFault: the port is taken.
        """
        servers = cls()
        silences = Silences(Ids(0))
        told = ""
        if rules.groups:
            told = await servers._serve("ALERTMANAGER_URL", alertmanager_app(rules, silences, clock), 0)
        app = prometheus_app(recording.metrics, rules, clock, alertmanager_url=told)
        try:
            await servers._serve("PROMETHEUS_URL", app, port)
        except OSError as error:
            await servers.close()
            raise EnvironmentFault(
                f"port {port} cannot be used: {error.strerror}", hint="choose another --port"
            ) from error
        if recording.logs.count:
            await servers._serve("LOKI_URL", loki_app(recording.logs, clock), 0)
        servers.urls = {"PROMETHEUS_URL": servers.urls["PROMETHEUS_URL"], **servers.urls}
        return servers

    async def _serve(self, name: str, app: web.Application, port: int) -> str:
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
        self._runners.append(runner)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        self.urls[name] = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return self.urls[name]

    async def close(self) -> None:
        """End all servers."""
        for runner in self._runners:
            await runner.cleanup()
