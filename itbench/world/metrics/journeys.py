"""What outside probes of the journeys export, every five seconds: `journey_requests_total`, `journey_duration_seconds_*`."""

from typing import Any

import numpy as np

from itbench.telemetry.labels import Labels, freeze
from itbench.telemetry.metrics import MetricStore
from itbench.world.flow.engine import BOUNDS_S
from itbench.world.metrics.sheet import Row, Sheet
from itbench.world.probes import Probes

LE = [f"{bound:g}" for bound in BOUNDS_S] + ["+Inf"]


class JourneyMetrics:
    """The exporter of one app's probes.

    Args:
        store: where samples go.
        probes: what was measured.
        namespace: of the app, as a label.
        seed: of the noise.
    """

    def __init__(self, store: MetricStore, probes: Probes, namespace: str, seed: int) -> None:
        self._sheet, self._probes, self._seed = Sheet(store, "journeys"), probes, seed
        self._base = {"job": "journey-probes", "instance": "probes:9115", "namespace": namespace}
        self._last: dict[str, list[float]] = {}
        self._total: dict[str, list[float]] = {}
        self._labels = {name: self._series(name) for name in probes.totals}
        self._up = freeze({"__name__": "up", **self._base})

    def scrape(self, now: float) -> None:
        """One scrape: counts drawn around what was measured exactly."""
        rng = np.random.default_rng([self._seed, int(now * 1000), 3])
        rows: list[Row] = [(self._up, 1.0)]
        for name, totals in self._probes.totals.items():
            exact = [totals.ok, totals.failed, *(float(x) for x in totals.buckets)]
            delta = np.maximum(np.array(exact) - np.array(self._last.get(name, [0.0] * len(exact))), 0.0)
            drawn = np.where(delta > 1e-6, rng.poisson(delta), 0)
            self._last[name] = exact
            before = self._total.get(name, [0.0] * len(exact))
            self._total[name] = [old + float(new) for old, new in zip(before, drawn, strict=True)]
            rows += self._rows(name, totals.latency_s)
        self._sheet.write(now, rows)

    def _series(self, name: str) -> list[Labels]:
        """Label sets of a journey's series, in the order of `_rows`."""
        base, metric = {**self._base, "journey": name}, "journey_duration_seconds"
        plain = [{"__name__": "journey_requests_total", **base, "result": result} for result in ("ok", "error")]
        plain += [{"__name__": f"{metric}_bucket", **base, "le": le} for le in LE]
        plain += [{"__name__": f"{metric}_{part}", **base} for part in ("sum", "count")]
        return [freeze(labels) for labels in plain]

    def _rows(self, name: str, latency_s: float) -> list[Row]:
        ok, failed, *buckets = self._total[name]
        values = [ok, failed]
        if sum(buckets) > 0:
            summed = np.cumsum(buckets)
            values += [*summed.tolist(), latency_s, float(summed[-1])]
        return list(zip(self._labels[name], values, strict=False))

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        return {
            "last": {k: list(v) for k, v in self._last.items()},
            "total": {k: list(v) for k, v in self._total.items()},
        }

    def restore(self, data: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._last = {name: list(values) for name, values in data["last"].items()}
        self._total = {name: list(values) for name, values in data["total"].items()}
