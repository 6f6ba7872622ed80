"""The part of Prometheus' HTTP API that is about its state: rules, alerts, targets, metadata, status. Served by `http`."""

import re
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from math import isinf, isnan
from typing import Any

from aiohttp import web
from multidict import MultiDict

from itbench.core.clock import from_unix
from itbench.telemetry.door import ApiFault, Pacer, build_facts, show_time, success
from itbench.telemetry.labels import NAME
from itbench.telemetry.metrics import MetricStore
from itbench.telemetry.promql import Options, format_float, parse, query_instant
from itbench.telemetry.promql.gotext import show_duration
from itbench.telemetry.promql.printer import text as text_of
from itbench.telemetry.rules import NEVER, Alert, Group, RuleEngine

VERSION = "3.16.0"
"""The version whose answers these are."""
Params = MultiDict[str]


@dataclass(frozen=True)
class StateApi:
    """The handlers; attributes as of `PrometheusApi`."""

    store: MetricStore
    rules: RuleEngine
    pacer: Pacer
    interval_s: float = 15.0
    alertmanager_url: str = ""
    lookback: Options = field(default_factory=Options)

    def _alert(self, alert: Alert) -> dict[str, Any]:
        shown = {
            "labels": dict(alert.labels),
            "annotations": alert.annotations,
            "state": alert.state,
            "activeAt": show_time(self.pacer.to_wire(alert.active_at)),
            "value": show_exponent(alert.value),
        }
        if alert.keep_since > NEVER:
            shown["keepFiringSince"] = show_time(self.pacer.to_wire(alert.keep_since))
        return shown

    def _active(self, group: Group, number: int) -> list[Alert]:
        return [alert for alert in self.rules.state(group, number).alerts.values() if alert.state != "inactive"]

    def _rule(self, group: Group, number: int, *, alerts: bool) -> dict[str, Any]:
        rule, state = group.rules[number], self.rules.state(group, number)
        when = (
            show_time(self.pacer.to_wire(state.evaluated_at)) if state.evaluated_at > NEVER else "0001-01-01T00:00:00Z"
        )
        shown: dict[str, Any] = {
            "name": rule.name,
            "query": text_of(parse(rule.expr)),
            "labels": dict(rule.labels),
            "health": state.health,
        }
        if state.error:
            shown["lastError"] = state.error
        shown |= {"evaluationTime": 0.0005, "lastEvaluation": when, "type": rule.kind}
        if rule.kind == "recording":
            return shown
        active = self._active(group, number)
        order = ("inactive", "pending", "firing")
        shown["state"] = max((alert.state for alert in active), key=order.index, default="inactive")
        shown |= {
            "duration": rule.for_s,
            "keepFiringFor": rule.keep_firing_for_s,
            "annotations": dict(rule.annotations),
        }
        shown["alerts"] = [self._alert(alert) for alert in active] if alerts else []
        return shown

    async def rules_(self, params: Params, _: web.Request) -> web.Response:
        """Rule groups with their rules and states."""
        kind = params.get("type", "")
        if kind not in ("", "alert", "record"):
            raise ApiFault("bad_data", f'invalid parameter "type": not supported value "{kind}"')
        names, files, groups = (set(params.getall(f"{key}[]", [])) for key in ("rule_name", "file", "rule_group"))
        with_alerts = params.get("exclude_alerts", "") != "true"
        shown = []
        for group in self.rules.groups:
            if (files and group.file not in files) or (groups and group.name not in groups):
                continue
            rules = [
                self._rule(group, number, alerts=with_alerts)
                for number, rule in enumerate(group.rules)
                if rule.kind.startswith(kind) and (not names or rule.name in names)
            ]
            if rules or not (names or kind):
                shown.append({**self._group(group), "rules": rules})
        return success({"groups": shown})

    def _group(self, group: Group) -> dict[str, Any]:
        at = self.rules.evaluated_at(group)
        when = "0001-01-01T00:00:00Z" if isinf(at) else show_time(self.pacer.to_wire(at))
        shown = {"name": group.name, "file": group.file, "interval": group.interval_s, "limit": 0}
        return {**shown, "evaluationTime": 0.001, "lastEvaluation": when}

    async def alerts(self, _: Params, __: web.Request) -> web.Response:
        """Pending and firing alerts."""
        found = [
            alert
            for group in self.rules.groups
            for number in range(len(group.rules))
            for alert in self._active(group, number)
        ]
        return success({"alerts": [self._alert(alert) for alert in found]})

    async def targets(self, params: Params, _: web.Request) -> web.Response:
        """Scrape targets: those whose `up` series is alive."""
        now = self.pacer.now()
        state = params.get("state", "any").lower()
        shown: dict[str, Any] = {"activeTargets": [], "droppedTargets": [], "droppedTargetCounts": {}}
        if state != "dropped":
            times = query_instant(self.store, "timestamp(up)", now, self.lookback).values()
            alive = query_instant(self.store, "up", now, self.lookback)
            shown["activeTargets"] = [
                self._target(dict(each.labels), float(each.v[-1]), times[tuple(p for p in each.labels if p[0] != NAME)])
                for each in alive.series
            ]
        return success(shown)

    def _target(self, labels: dict[str, str], up: float, unix_s: float) -> dict[str, Any]:
        labels.pop(NAME, None)
        job, instance = labels.get("job", ""), labels.get("instance", "")
        path = labels.get("metrics_path", "/metrics")
        url = f"http://{instance}{path}"
        discovered = {"__address__": instance, "__metrics_path__": path, "__scheme__": "http", "job": job}
        seconds = f"{self.interval_s:g}s"
        return {
            "discoveredLabels": discovered,
            "labels": labels,
            "scrapePool": job,
            "scrapeUrl": url,
            "globalUrl": url,
            "lastError": "" if up else f'Get "{url}": context deadline exceeded',
            "lastScrape": show_time(self.pacer.to_wire(from_unix(unix_s))),
            "lastScrapeDuration": 0.005 if up else 10.0,
            "health": "up" if up else "down",
            "scrapeInterval": seconds,
            "scrapeTimeout": "10s",
        }

    async def metadata(self, params: Params, _: web.Request) -> web.Response:
        """Types and help texts of metrics."""
        wanted, known = params.get("metric", ""), self.store.metadata
        found = {name: [data] for name, data in known.items() if not wanted or name == wanted}
        text = params.get("limit", "") or "-1"
        if re.fullmatch(r"[+-]?\d+", text, re.ASCII) is None:
            raise ApiFault("bad_data", "limit must be a number")
        return success(dict(list(found.items())[: int(text)]) if int(text) >= 0 else found)

    async def buildinfo(self, _: Params, __: web.Request) -> web.Response:
        """The version whose answers these are."""
        return success(build_facts(VERSION))

    async def runtimeinfo(self, _: Params, __: web.Request) -> web.Response:
        """Retention and what else a dashboard shows."""
        retention = show_duration(self.store.retention_s * 1e9)
        start = show_time(self.pacer.to_wire(0.0))
        return success(
            {
                "startTime": start,
                "serverTime": show_time(self.pacer.to_wire(self.pacer.now())),
                "reloadConfigSuccess": True,
                "lastConfigTime": start,
                "corruptionCount": 0,
                "GOGC": "75",
                "GODEBUG": "",
                "storageRetention": retention,
            }
        )

    async def tsdb(self, params: Params, _: web.Request) -> web.Response:
        """How many series and labels there are."""
        text = params.get("limit", "") or "10"
        if not text.isdecimal() or int(text) < 1:
            raise ApiFault("bad_data", "limit must be a positive number")
        series = self.store.series([])
        pairs = Counter(pair for labels in series for pair in labels)
        names = Counter(name for name, _ in pairs)
        sizes = Counter[str]()
        for (name, value), count in pairs.items():
            sizes[name] += len(value.encode()) * count
        times = [float(t) for block in self.store.blocks() if len(block.times) for t in block.times[[0, -1]]]
        newest, oldest = (
            round(self.pacer.to_wire(each) * 1000) for each in (max(times, default=0.0), min(times, default=0.0))
        )
        head: dict[str, int] = {"numSeries": len(series), "numLabelPairs": len(pairs), "chunkCount": len(series)}
        by_metric = Counter({value: count for (name, value), count in pairs.items() if name == NAME})
        by_pair = Counter({f"{name}={value}": count for (name, value), count in pairs.items()})
        return success(
            {
                "headStats": head | {"minTime": oldest, "maxTime": newest},
                "seriesCountByMetricName": _top(by_metric, int(text)),
                "labelValueCountByLabelName": _top(names, int(text)),
                "memoryInBytesByLabelName": _top(sizes, int(text)),
                "seriesCountByLabelValuePair": _top(by_pair, int(text)),
            }
        )

    async def config(self, _: Params, __: web.Request) -> web.Response:
        """The configuration, as far as there is one."""
        seconds = show_duration(self.interval_s * 1e9)
        return success({"yaml": f"global:\n  scrape_interval: {seconds}\n  evaluation_interval: {seconds}\n"})

    async def flags(self, _: Params, __: web.Request) -> web.Response:
        """Flags that dashboards look at."""
        return success(
            {
                "query.lookback-delta": show_duration(self.lookback.lookback_s * 1e9),
                "query.max-samples": "50000000",
                "query.timeout": "2m",
                "storage.tsdb.retention.time": show_duration(self.store.retention_s * 1e9),
                "web.enable-admin-api": "false",
                "web.enable-lifecycle": "false",
            }
        )

    async def scrape_pools(self, _: Params, __: web.Request) -> web.Response:
        """The jobs that are scraped."""
        alive = query_instant(self.store, "up", self.pacer.now(), self.lookback).series
        return success({"scrapePools": sorted({dict(each.labels).get("job", "") for each in alive})})

    async def replay(self, _: Params, __: web.Request) -> web.Response:
        """Nothing has to be replayed."""
        return success({"min": 0, "max": 0, "current": 0})

    async def nothing(self, _: Params, __: web.Request) -> web.Response:
        """Lists that are always empty."""
        return success([])

    async def alertmanagers(self, _: Params, __: web.Request) -> web.Response:
        """Where alerts go."""
        active = [{"url": f"{self.alertmanager_url}/api/v2/alerts"}] if self.alertmanager_url else []
        return success({"activeAlertmanagers": active, "droppedAlertmanagers": []})

    def handlers(self) -> "tuple[tuple[str, Handler, bool], ...]":
        """Path below /api/v1, handler, and whether asking costs nothing."""
        return (
            ("rules", self.rules_, False),
            ("alerts", self.alerts, False),
            ("targets", self.targets, False),
            ("targets/metadata", self.nothing, False),
            ("scrape_pools", self.scrape_pools, False),
            ("metadata", self.metadata, False),
            ("status/tsdb", self.tsdb, False),
            ("alertmanagers", self.alertmanagers, True),
            ("notifications", self.nothing, True),
            ("status/buildinfo", self.buildinfo, True),
            ("status/runtimeinfo", self.runtimeinfo, True),
            ("status/config", self.config, True),
            ("status/flags", self.flags, True),
            ("status/walreplay", self.replay, True),
        )


Handler = Callable[[Params, web.Request], Awaitable[web.Response]]


def _top(counts: "Counter[str]", limit: int) -> list[dict[str, Any]]:
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return [{"name": name, "value": value} for name, value in ranked[:limit]]


def show_exponent(value: float) -> str:
    """A number as alerts carry it: `1e+00`."""
    if isnan(value) or isinf(value):
        return format_float(value)
    digits = len(Decimal(repr(float(value))).normalize().as_tuple().digits)
    return f"{value:.{digits - 1}e}"
