"""The HTTP API of Prometheus over a metric store and a rule engine: what agents, dashboards and `curl` talk to."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from math import isinf, isnan
from typing import Any

from aiohttp import web
from multidict import MultiDict

from itbench.core.clock import from_unix
from itbench.telemetry.door import ApiFault, Moment, Pacer, application, moment_of, parse_span, show_time, success
from itbench.telemetry.labels import NAME, Labels, Matcher
from itbench.telemetry.metrics import MetricStore
from itbench.telemetry.promql import Options, QueryError, format_float, parse, query_instant, query_range
from itbench.telemetry.promql.printer import pretty
from itbench.telemetry.promql.syntax import parse_matcher
from itbench.telemetry.rules import Alert, Group, RuleEngine
from itbench.telemetry.wire import encode_result

VERSION = "3.16.0"
"""The version whose answers these are."""
MAX_POINTS = 11_000
Params = MultiDict[str]


def everyone_outside(_: web.Request) -> bool:
    """The default: every request came from outside the tool registry."""
    return True


@dataclass(frozen=True)
class PrometheusApi:
    """The handlers.

    Attributes:
        store, rules, pacer: what they serve.
        outside: whether a request came from outside the tool registry.
        interval_s: shown as scrape interval of the targets.
        alertmanager_url: shown as the active Alertmanager.
        lookback: options of every query.
    """

    store: MetricStore
    rules: RuleEngine
    pacer: Pacer
    outside: Callable[[web.Request], bool] = everyone_outside
    interval_s: float = 15.0
    alertmanager_url: str = ""
    lookback: Options = field(default_factory=Options)

    def _options(self, moment: Moment, params: Params) -> Options:
        lookback = parse_span(params["lookback_delta"]) if params.get("lookback_delta") else self.lookback.lookback_s
        if lookback is None:
            raise ApiFault(
                "bad_data", f'error parsing lookback delta duration: cannot parse "{params["lookback_delta"]}"'
            )
        return Options(lookback, self.lookback.subquery_step_s, moment.shift_s, self.lookback.max_cells)

    async def query(self, params: Params, _: web.Request) -> web.Response:
        """An instant query."""
        moment = moment_of(self.pacer, params, "time", self.pacer.now())
        result = query_instant(self.store, params.get("query", ""), moment.world, self._options(moment, params))
        return success(encode_result(result, moment.epoch_s), warnings=result.warnings, infos=result.infos)

    async def format_query(self, params: Params, _: web.Request) -> web.Response:
        """The query, laid out."""
        return success(pretty(parse(params.get("query", ""))))

    async def query_range(self, params: Params, _: web.Request) -> web.Response:
        """A range query."""
        start, end = moment_of(self.pacer, params, "start"), moment_of(self.pacer, params, "end")
        if end.wire < start.wire:
            raise ApiFault("bad_data", 'invalid parameter "end": end timestamp must not be before start time')
        text = params.get("step", "")
        step = parse_span(text)
        if step is None:
            raise ApiFault("bad_data", f'invalid parameter "step": cannot parse "{text}" to a valid duration')
        if step <= 0:
            problem = "zero or negative query resolution step widths are not accepted. Try a positive integer"
            raise ApiFault("bad_data", f'invalid parameter "step": {problem}')
        if (end.wire - start.wire) / step > MAX_POINTS:
            problem = "exceeded maximum resolution of 11,000 points per timeseries."
            raise ApiFault("bad_data", f"{problem} Try decreasing the query resolution (?step=XX)")
        last = start.world + (end.wire - start.wire)
        query, options = params.get("query", ""), self._options(start, params)
        result = query_range(self.store, query, start.world, last, step, options)
        return success(encode_result(result, start.epoch_s), warnings=result.warnings, infos=result.infos)

    def _matched(self, params: Params, *, required: bool) -> list[Labels]:
        """Label sets that any of the `match[]` selectors finds, sorted."""
        selectors = params.getall("match[]", [])
        if required and not selectors:
            raise ApiFault("bad_data", "no match[] parameter provided")
        low = moment_of(self.pacer, params, "start", -1e9).world
        high = moment_of(self.pacer, params, "end", self.pacer.now()).world
        matchers: list[list[Matcher]] = [self._matchers(each) for each in selectors] or [[]]
        return sorted({labels for each in matchers for labels in self.store.series(each, low, high)})

    @staticmethod
    def _matchers(selector: str) -> list[Matcher]:
        try:
            return parse_matcher(selector).matchers
        except QueryError as error:
            raise ApiFault("bad_data", f'invalid parameter "match[]": {error}') from error

    async def series(self, params: Params, _: web.Request) -> web.Response:
        """Label sets by selector."""
        return success(_limited([dict(labels) for labels in self._matched(params, required=True)], params))

    async def labels(self, params: Params, _: web.Request) -> web.Response:
        """Label names."""
        found = {name for labels in self._matched(params, required=False) for name, _ in labels}
        return success(_limited(sorted(found), params))

    async def label_values(self, params: Params, request: web.Request) -> web.Response:
        """Values of one label."""
        wanted = request.match_info["name"]
        found = {value for labels in self._matched(params, required=False) for name, value in labels if name == wanted}
        return success(_limited(sorted(found), params))

    def _alert(self, alert: Alert) -> dict[str, Any]:
        shown = {
            "labels": dict(alert.labels),
            "annotations": alert.annotations,
            "state": alert.state,
            "activeAt": show_time(self.pacer.to_wire(alert.active_at)),
            "value": show_exponent(alert.value),
        }
        if alert.keep_since >= 0:
            shown["keepFiringSince"] = show_time(self.pacer.to_wire(alert.keep_since))
        return shown

    def _active(self, group: Group, number: int) -> list[Alert]:
        return [alert for alert in self.rules.state(group, number).alerts.values() if alert.state != "inactive"]

    def _rule(self, group: Group, number: int, *, alerts: bool) -> dict[str, Any]:
        rule, state = group.rules[number], self.rules.state(group, number)
        when = show_time(self.pacer.to_wire(state.evaluated_at)) if state.evaluated_at >= 0 else "0001-01-01T00:00:00Z"
        shown: dict[str, Any] = {
            "name": rule.name,
            "query": rule.expr,
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
        limit = int(params.get("limit", "-1") or -1)
        return success(dict(list(found.items())[:limit]) if limit >= 0 else found)

    async def buildinfo(self, _: Params, __: web.Request) -> web.Response:
        """The version whose answers these are."""
        shown = {
            "version": VERSION,
            "revision": "",
            "branch": "HEAD",
            "buildUser": "",
            "buildDate": "",
            "goVersion": "",
        }
        return success(shown)

    async def runtimeinfo(self, _: Params, __: web.Request) -> web.Response:
        """Retention and what else a dashboard shows."""
        retention = f"{self.store.retention_s / 86400:g}d"
        start = show_time(self.pacer.to_wire(0.0))
        return success(
            {"startTime": start, "reloadConfigSuccess": True, "corruptionCount": 0, "storageRetention": retention}
        )

    async def alertmanagers(self, _: Params, __: web.Request) -> web.Response:
        """Where alerts go."""
        active = [{"url": f"{self.alertmanager_url}/api/v2/alerts"}] if self.alertmanager_url else []
        return success({"activeAlertmanagers": active, "droppedAlertmanagers": []})

    async def nothing(self, _: Params, __: web.Request) -> web.Response:
        """Exemplars: none are kept."""
        return success([])


def _limited(found: list[Any], params: Params) -> list[Any]:
    text = params.get("limit", "") or "0"
    if not text.isdecimal():
        raise ApiFault("bad_data", f'invalid parameter "limit": cannot parse "{text}" to a valid limit')
    return found[: int(text)] if int(text) else found


def show_exponent(value: float) -> str:
    """A number as alerts carry it: `1e+00`."""
    if isnan(value) or isinf(value):
        return format_float(value)
    digits = len(Decimal(repr(float(value))).normalize().as_tuple().digits)
    return f"{value:.{digits - 1}e}"


Handler = Callable[[Params, web.Request], Awaitable[web.Response]]


async def _params(request: web.Request) -> Params:
    """Parameters of the address and of a form in the body."""
    params: Params = MultiDict(request.query)
    if request.method == "POST":
        form = await request.post()
        params.extend((name, value) for name, value in form.items() if isinstance(value, str))
    return params


def _served(
    api: PrometheusApi, handler: Handler, *, free: bool = False
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def serve(request: web.Request) -> web.Response:
        params = await _params(request)
        api.pacer.enter(outside=api.outside(request), free=free)
        try:
            return await handler(params, request)
        except ApiFault as fault:
            return fault.response()
        except QueryError as error:
            prefix = 'invalid parameter "query": ' if error.kind == "bad_data" else ""
            return ApiFault(error.kind, prefix + str(error)).response()

    return serve


def _plain(text: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def serve(_: web.Request) -> web.Response:
        return web.Response(text=text)

    return serve


def prometheus_app(store: MetricStore, rules: RuleEngine, pacer: Pacer, **options: Any) -> web.Application:
    """The application.

    Args:
        store, rules, pacer: what it serves.
        options: further fields of `PrometheusApi`.
    """
    api = PrometheusApi(store, rules, pacer, **options)
    app = application()
    both: Iterable[tuple[str, Handler]] = (
        ("query", api.query),
        ("query_range", api.query_range),
        ("format_query", api.format_query),
        ("series", api.series),
        ("labels", api.labels),
        ("query_exemplars", api.nothing),
    )
    for name, handler in both:
        app.router.add_route("GET", f"/api/v1/{name}", _served(api, handler))
        app.router.add_route("POST", f"/api/v1/{name}", _served(api, handler))
    app.router.add_get("/api/v1/label/{name}/values", _served(api, api.label_values))
    for name, handler in (
        ("rules", api.rules_),
        ("alerts", api.alerts),
        ("targets", api.targets),
        ("metadata", api.metadata),
    ):
        app.router.add_get(f"/api/v1/{name}", _served(api, handler))
    app.router.add_get("/api/v1/alertmanagers", _served(api, api.alertmanagers, free=True))
    app.router.add_get("/api/v1/status/buildinfo", _served(api, api.buildinfo, free=True))
    app.router.add_get("/api/v1/status/runtimeinfo", _served(api, api.runtimeinfo, free=True))
    app.router.add_get("/-/healthy", _plain("Prometheus Server is Healthy.\n"))
    app.router.add_get("/-/ready", _plain("Prometheus Server is Ready.\n"))
    return app


__all__ = ["PrometheusApi", "prometheus_app"]
