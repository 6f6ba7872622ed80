"""Draws log lines of containers when somebody asks: start-up, background, requests, and errors that really happened.

Lines depend only on the recorded history, the pod's uid and the noise seed, so that asking twice gives the same lines.
"""

from bisect import bisect_left
from collections.abc import Iterator
from math import inf

from itbench.core.documents.app import App, Log, Program
from itbench.core.ids import digest
from itbench.world.history import KINDS, History
from itbench.world.kubelet.state import ContainerState, PodState, Run
from itbench.world.noise import Noise
from itbench.world.text import fill, log_line
from itbench.world.wiring import Link, Net

Line = tuple[float, str]
ERRORS_PER_PERIOD = 5
REQUESTS_PER_PERIOD = 2
LAG_S = 5.0
"""What happened in a period is written during the next one: a follower must never find lines older than those it has seen."""
TIMED_OUT = "context deadline exceeded"
REJECTED = "server overloaded: accept queue is full"


def _unit(*key: object) -> float:
    return int.from_bytes(digest(*key)[:6], "big") / 2**48


class Logbook:
    """The log lines of one cluster's containers.

    Args:
        app: formats and operations.
        net: which edges belong to which service.
        history: what happened.
        noise: its seed, for telemetry.
    """

    def __init__(self, app: App | None, net: Net | None, history: History | None, noise: Noise) -> None:
        self.app, self.net, self.history, self.noise = app, net, history, noise
        self._made: dict[str, list[Link]] = {}
        self._answered: dict[str, list[Link]] = {}
        for link in net.links if net else ():
            self._answered.setdefault(link.workload, []).append(link)
            if link.caller:
                self._made.setdefault(link.caller, []).append(link)

    def lines(
        self,
        pod: PodState,
        container: ContainerState,
        program: Program,
        workload: str,
        run: Run,
        span: tuple[float, float],
    ) -> list[Line]:
        """Lines of one life of a container.

        Args:
            pod: the pod.
            container: the container.
            program: what runs in it.
            workload: `deployment/name` above the pod.
            run: which life.
            span: world seconds [start, end).

        Returns:
            (world second, text), oldest first.
        """
        start, end = max(span[0], run.start), min(span[1], run.end)
        # A process may say its last words in the very moment in which it ends.
        found: list[Line] = [line for line in run.lines if start <= line[0] < span[1] and line[0] <= run.end]
        if end <= start:
            return found
        if run.serves_from < inf or not program.listens:
            found += self._background(pod, program.log, run, start, end)
        service = self.app.services.get(workload) if self.app else None
        serving = service is not None and (service.container or workload.rsplit("/", 1)[-1]) == container.name
        if serving and self.history is not None:
            found += self._traffic(pod, program.log, workload, max(start, run.start), end)
        return sorted(found, key=lambda line: line[0])

    def _background(self, pod: PodState, log: Log, run: Run, start: float, end: float) -> Iterator[Line]:
        for index, item in enumerate(log.background):
            first = max(0, int((start - run.start) / item.every_s) - 1)
            number = first
            while run.start + number * item.every_s < end:
                at = run.start + (number + _unit(self.noise.seed, pod.uid, index, number)) * item.every_s
                if start <= at < end and at > run.start + 1.0:
                    yield at, log_line(log, at, item.message, item.level)
                number += 1

    def _traffic(self, pod: PodState, log: Log, workload: str, start: float, end: float) -> Iterator[Line]:
        assert self.history is not None and self.net is not None
        first, failed, timed_out, rejected, errors = (KINDS.index(kind) for kind in KINDS)
        for since, until, counts in self.history.periods(start - LAG_S, end - LAG_S):
            for link in self._answered.get(workload, ()):
                good = float(counts[first, link.index] - counts[failed, link.index])
                if log.request and good > 1e-6:
                    for at in self._moments(pod, link, "ok", since, until, min(good, REQUESTS_PER_PERIOD), start, end):
                        yield at, log_line(log, at, fill(log.request, operation=link.operation))
                bad = float(counts[errors, link.index])
                if log.error and bad > 1e-3:
                    reason = self.history.reason(link.index, until) or "internal error"
                    for at in self._moments(pod, link, "bad", since, until, min(bad, ERRORS_PER_PERIOD), start, end):
                        yield at, self._error(log, at, link.operation, reason)
            for link in self._made.get(workload, ()):
                if not log.error:
                    continue
                for kind, count in (
                    ("failed", counts[failed, link.index]),
                    ("slow", counts[timed_out, link.index]),
                    ("full", counts[rejected, link.index]),
                ):
                    reason = self._reason(link, kind, until)
                    if not reason or count < 1e-3:
                        continue
                    for at in self._moments(
                        pod, link, kind, since, until, min(float(count), ERRORS_PER_PERIOD), start, end
                    ):
                        yield at, self._error(log, at, self._caller(link), reason)

    def _caller(self, link: Link) -> str:
        assert self.net is not None
        return self.net.links[link.parent].operation

    def _reason(self, link: Link, kind: str, until: float) -> str:
        assert self.history is not None
        target = link.workload.rsplit("/", 1)[-1]
        known = self.history.reason(link.index, until)
        if kind == "failed":
            return (
                f"could not {'reach' if 'dial' in known or 'lookup' in known else 'call'} {target}: {known}"
                if known
                else ""
            )
        if known:
            return ""
        return f"{target} {link.operation}: {TIMED_OUT if kind == 'slow' else REJECTED}"

    @staticmethod
    def _error(log: Log, at: float, operation: str, reason: str) -> str:
        return log_line(log, at, fill(log.error or "", operation=operation, reason=reason), "ERROR")

    def _moments(
        self, pod: PodState, link: Link, kind: str, since: float, until: float, wanted: float, start: float, end: float
    ) -> list[float]:
        """When the lines of a period fall: as many as happened, at most a few; fractions are drawn."""
        count = int(wanted) + (_unit(self.noise.seed, pod.uid, link.index, kind, until, "n") < wanted - int(wanted))
        times = sorted(
            LAG_S + since + (until - since) * _unit(self.noise.seed, pod.uid, link.index, kind, until, i)
            for i in range(count)
        )
        return times[bisect_left(times, start) : bisect_left(times, end)]
