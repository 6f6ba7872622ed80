"""What outside probes of the journeys export, every five seconds: `journey_requests_total`, `journey_duration_seconds_*`."""

from typing import Any

import numpy as np

from itbench.telemetry.labels import Labels, freeze
from itbench.telemetry.metrics import MetricStore
from itbench.world.flow.engine import BOUNDS_S
from itbench.world.metrics.sheet import Layout, Sheet
from itbench.world.noise import Noise
from itbench.world.probes import Probes

LE = [f"{bound:g}" for bound in BOUNDS_S] + ["+Inf"]


class JourneyMetrics:
    """The exporter of one app's probes.

    Args:
        store: where samples go.
        probes: what was measured.
        namespace: of the app, as a label.
        noise: its seed.
    """

    def __init__(self, store: MetricStore, probes: Probes, namespace: str, noise: Noise) -> None:
        self._sheet, self._probes, self._noise = Sheet(store, "journeys"), probes, noise
        self._base = {"job": "journey-probes", "instance": "probes:9115", "namespace": namespace}
        # Counts by journey: that went well, that did not, and by latency.
        self._last = np.zeros((len(probes.totals), 2 + len(LE)))
        self._total = np.zeros_like(self._last)
        series = [each for name in probes.totals for each in self._series(name)]
        self._layout = Layout([freeze({"__name__": "up", **self._base}), *series])

    def scrape(self, now: float) -> None:
        """One scrape: counts drawn around what was measured exactly."""
        rng = np.random.default_rng([self._noise.seed, int(now * 1000), 3])
        totals = list(self._probes.totals.values())
        exact = np.array([[each.ok, each.failed, *each.buckets.tolist()] for each in totals])
        delta = np.maximum(exact - self._last, 0.0)
        self._total += np.where(delta > 1e-6, rng.poisson(delta), 0)
        self._last = exact
        # Latencies have series from the first request on.
        summed = np.cumsum(self._total[:, 2:], axis=1)
        latency = np.column_stack([summed, [each.latency_s for each in totals], summed[:, -1]])
        latency[summed[:, -1] <= 0] = np.nan
        values = np.concatenate([[1.0], np.column_stack([self._total[:, :2], latency]).ravel()])
        self._sheet.write(now, fixed=[(self._layout, values)])

    def _series(self, name: str) -> list[Labels]:
        """Label sets of a journey's series, in the order of `scrape`."""
        base, metric = {**self._base, "journey": name}, "journey_duration_seconds"
        plain = [{"__name__": "journey_requests_total", **base, "result": result} for result in ("ok", "error")]
        plain += [{"__name__": f"{metric}_bucket", **base, "le": le} for le in LE]
        plain += [{"__name__": f"{metric}_{part}", **base} for part in ("sum", "count")]
        return [freeze(labels) for labels in plain]

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        return {"last": self._last.copy(), "total": self._total.copy()}

    def restore(self, data: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._last, self._total = np.array(data["last"]), np.array(data["total"])
