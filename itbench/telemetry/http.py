"""The HTTP API of Prometheus over a metric store and a rule engine: what agents, dashboards and `curl` talk to."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web
from multidict import MultiDict

from itbench.telemetry.door import ApiFault, Moment, Pacer, application, moment_of, parse_span, success
from itbench.telemetry.http_state import StateApi
from itbench.telemetry.labels import Labels, Matcher
from itbench.telemetry.metrics import MetricStore
from itbench.telemetry.promql import Options, QueryError, parse, query_instant, query_range
from itbench.telemetry.promql.gotext import quote
from itbench.telemetry.promql.printer import as_json, pretty
from itbench.telemetry.promql.syntax import parse_matcher
from itbench.telemetry.promql.values import Result
from itbench.telemetry.rules import RuleEngine
from itbench.telemetry.wire import encode_result

TRUNCATED = "results truncated due to limit"
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_ESCAPED = re.compile(r"__|_([0-9a-f]+)_")
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
        text = params.get("lookback_delta", "")
        lookback = parse_span(text) if text else self.lookback.lookback_s
        if lookback is None:
            problem = f'error parsing lookback delta duration: cannot parse "{text}" to a valid duration'
            raise ApiFault("bad_data", problem)
        self._check_timeout(params.get("timeout", ""))
        return Options(lookback, self.lookback.subquery_step_s, moment.shift_s, self.lookback.max_cells)

    @staticmethod
    def _check_timeout(text: str) -> None:
        """A timeout is understood, and never comes."""
        seconds = parse_span(text) if text else 1.0
        if seconds is None:
            raise ApiFault("bad_data", f'invalid parameter "timeout": cannot parse "{text}" to a valid duration')
        if seconds <= 0:
            raise ApiFault("bad_data", f'invalid parameter "timeout": timeout must be positive, got {seconds:g}s')

    @staticmethod
    def _answer(result: Result, epoch_s: float, limit: int) -> web.Response:
        warnings = result.warnings
        if 0 < limit < len(result.series):
            result = replace(result, series=result.series[:limit])
            warnings = (*warnings, TRUNCATED)
        return success(encode_result(result, epoch_s), warnings=warnings, infos=result.infos)

    async def query(self, params: Params, _: web.Request) -> web.Response:
        """An instant query."""
        limit = limit_of(params)
        moment = moment_of(self.pacer, params, "time", self.pacer.now())
        result = query_instant(self.store, params.get("query", ""), moment.world, self._options(moment, params))
        return self._answer(result, moment.epoch_s, limit)

    async def parse_query(self, params: Params, _: web.Request) -> web.Response:
        """The syntax tree of a query."""
        return success(as_json(parse(params.get("query", ""))))

    async def format_query(self, params: Params, _: web.Request) -> web.Response:
        """The query, laid out."""
        return success(pretty(parse(params.get("query", ""))))

    async def query_range(self, params: Params, _: web.Request) -> web.Response:
        """A range query."""
        limit = limit_of(params)
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
        return self._answer(result, start.epoch_s, limit)

    def _matched(self, params: Params, *, required: bool) -> list[Labels]:
        """Label sets that any of the `match[]` selectors finds, sorted."""
        selectors = params.getall("match[]", [])
        if required and not selectors:
            raise ApiFault("bad_data", "no match[] parameter provided")
        low = moment_of(self.pacer, params, "start", -1e10).world
        high = moment_of(self.pacer, params, "end", self.pacer.now()).world
        prefix = 'invalid parameter "match[]": ' if required else ""
        matchers: list[list[Matcher]] = [_matchers(each, prefix) for each in selectors] or [[]]
        return sorted({labels for each in matchers for labels in self.store.series(each, low, high)})

    async def series(self, params: Params, _: web.Request) -> web.Response:
        """Label sets by selector."""
        limit = limit_of(params)
        return _limited([dict(labels) for labels in self._matched(params, required=True)], limit)

    async def labels(self, params: Params, _: web.Request) -> web.Response:
        """Label names."""
        limit = limit_of(params)
        found = {name for labels in self._matched(params, required=False) for name, _ in labels}
        return _limited(sorted(found), limit)

    async def label_values(self, params: Params, request: web.Request) -> web.Response:
        """Values of one label."""
        limit, wanted = limit_of(params), unescape_name(request.match_info["name"])
        found = {value for labels in self._matched(params, required=False) for name, value in labels if name == wanted}
        return _limited(sorted(found), limit)

    async def exemplars(self, params: Params, _: web.Request) -> web.Response:
        """Exemplars: none are kept."""
        start = moment_of(self.pacer, params, "start", -1e10)
        end = moment_of(self.pacer, params, "end", self.pacer.now())
        if end.wire < start.wire:
            raise ApiFault("bad_data", "end timestamp must not be before start timestamp")
        try:
            parse(params.get("query", ""))
        except QueryError as error:
            raise ApiFault("bad_data", str(error)) from error
        return success([])


def _matchers(selector: str, prefix: str) -> list[Matcher]:
    try:
        matchers = parse_matcher(selector).matchers
    except QueryError as error:
        raise ApiFault("bad_data", f"{prefix}{error}") from error
    if all(each.accepts("") for each in matchers):
        raise ApiFault("bad_data", f"{prefix}match[] must contain at least one non-empty matcher")
    return matchers


def limit_of(params: Params) -> int:
    """The parameter `limit`, 0 where there is none; raises ApiFault for what is no number."""
    text = params.get("limit", "") or "0"
    if _WHOLE.fullmatch(text) is None:
        raise ApiFault("bad_data", f'invalid parameter "limit": strconv.Atoi: parsing {quote(text)}: invalid syntax')
    if int(text) < 0:
        raise ApiFault("bad_data", 'invalid parameter "limit": limit must be non-negative')
    return int(text)


def _limited(found: list[Any], limit: int) -> web.Response:
    if 0 < limit < len(found):
        return success(found[:limit], warnings=[TRUNCATED])
    return success(found)


def unescape_name(name: str) -> str:
    """A label name as it stands in an address: `U__http_2e_method` is `http.method`."""
    if not name.startswith("U__"):
        return name
    return _ESCAPED.sub(lambda match: "_" if match[1] is None else chr(int(match[1], 16)), name[3:])


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
        except RecursionError:
            return ApiFault("bad_data", "the expression is nested too deeply").response()

    return serve


def _plain(text: str, status: int = 200) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def serve(_: web.Request) -> web.Response:
        return web.Response(text=text, status=status)

    return serve


def prometheus_app(store: MetricStore, rules: RuleEngine, pacer: Pacer, **options: Any) -> web.Application:
    """The application.

    Args:
        store, rules, pacer: what it serves.
        options: further fields of `PrometheusApi`.
    """
    api = PrometheusApi(store, rules, pacer, **options)
    app = application()
    both: tuple[tuple[str, Handler], ...] = (
        ("query", api.query),
        ("query_range", api.query_range),
        ("format_query", api.format_query),
        ("parse_query", api.parse_query),
        ("series", api.series),
        ("labels", api.labels),
        ("query_exemplars", api.exemplars),
    )
    for name, handler in both:
        app.router.add_route("GET", f"/api/v1/{name}", _served(api, handler))
        app.router.add_route("POST", f"/api/v1/{name}", _served(api, handler))
    app.router.add_get("/api/v1/label/{name}/values", _served(api, api.label_values))
    state = StateApi(api.store, api.rules, api.pacer, api.interval_s, api.alertmanager_url, api.lookback)
    for name, handler, free in state.handlers():
        app.router.add_get(f"/api/v1/{name}", _served(api, handler, free=free))
    app.router.add_get("/-/healthy", _plain("Prometheus Server is Healthy.\n"))
    app.router.add_get("/-/ready", _plain("Prometheus Server is Ready.\n"))
    app.router.add_route("*", "/{rest:.*}", _plain("404 page not found\n", 404))
    return app


__all__ = ["PrometheusApi", "prometheus_app"]
