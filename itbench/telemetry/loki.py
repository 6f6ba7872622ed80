"""The HTTP API of Loki over a log source: `query_range`, `query`, `labels`, label values, `series`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import orjson
from aiohttp import web

from itbench.core.clock import shift_text, unix
from itbench.core.errors import UsageError
from itbench.telemetry.door import ApiFault, Moment, Pacer, application, build_facts, parse_span, parse_time
from itbench.telemetry.labels import Labels
from itbench.telemetry.logs import Line, LogSource, count_lines, find_lines, is_metric_query, parse_logs
from itbench.telemetry.wire import encode_result

MAX_LINES = 5000
DEFAULT_LINES = 100
DEFAULT_SPAN_S = 3600.0
VERSION = "3.5.0"


@dataclass(frozen=True)
class LokiApi:
    """The handlers."""

    source: LogSource
    pacer: Pacer

    def _time(self, request: web.Request, name: str, default: float) -> Moment:
        text = request.query.get(name, "")
        if not text:
            return Moment(default, self.pacer.to_wire(default))
        wire = int(text) / 1e9 if text.lstrip("-").isdecimal() and len(text) > 12 else parse_time(text)
        if wire is None:
            raise ApiFault(
                "bad_data", f"could not parse '{name}' parameter: strconv.ParseInt: parsing \"{text}\": invalid syntax"
            )
        return Moment(self.pacer.from_wire(wire), wire)

    def _span(self, request: web.Request) -> tuple[Moment, Moment]:
        end = self._time(request, "end", self.pacer.now())
        since = parse_span(request.query.get("since", "")) or DEFAULT_SPAN_S
        start = self._time(request, "start", end.world - since)
        if end.wire < start.wire:
            raise ApiFault("bad_data", "end timestamp must not be before or equal to start time")
        return start, end

    @staticmethod
    def _limit(request: web.Request) -> int:
        text = request.query.get("limit", str(DEFAULT_LINES))
        if not text.isdecimal() or int(text) == 0:
            raise ApiFault("bad_data", "limit must be a positive value")
        if int(text) > MAX_LINES:
            limits = f"limit > max_entries_limit ({text} > {MAX_LINES})"
            raise ApiFault("bad_data", f"max entries limit per query exceeded, {limits}")
        return int(text)

    async def query_range(self, request: web.Request) -> web.Response:
        """Lines, or counts of lines at every step."""
        start, end = self._span(request)
        text = request.query.get("query", "")
        if is_metric_query(text):
            given = request.query.get("step", "")
            step = parse_span(given) if given else float(max(1, ceil((end.wire - start.wire) / 250)))
            if not step or step <= 0:
                raise ApiFault("bad_data", "zero or negative query resolution step widths are not accepted")
            if (end.wire - start.wire) / step > 11_000:
                raise ApiFault("bad_data", "exceeded maximum resolution of 11,000 points per time series")
            last = start.world + (end.wire - start.wire)
            result = count_lines(self.source, text, start.world, last, step)
            return _answer(encode_result(result, start.epoch_s))
        direction = request.query.get("direction", "backward").lower()
        if direction not in ("forward", "backward"):
            raise ApiFault("bad_data", f"invalid direction '{direction}'")
        forward = direction == "forward"
        lines = find_lines(
            self.source,
            parse_logs(text),
            start.world,
            end.world,
            self._limit(request),
            "forward" if forward else "backward",
        )
        return _answer(_streams(lines, self.pacer))

    async def query(self, request: web.Request) -> web.Response:
        """Counts of lines at one moment."""
        moment = self._time(request, "time", self.pacer.now())
        text = request.query.get("query", "")
        if not is_metric_query(text):
            parse_logs(text)
            problem = (
                "log queries are not supported as an instant query type, please change your query to a range query type"
            )
            raise ApiFault("bad_data", problem)
        return _answer(encode_result(count_lines(self.source, text, moment.world, moment.world, None), moment.epoch_s))

    def _labels(self, request: web.Request) -> list[Labels]:
        start, end = self._span(request)
        text = request.query.get("query", "")
        query = parse_logs(text) if text else None
        streams = self.source.streams(start.world, end.world)
        return sorted(stream.labels for stream in streams if query is None or query.selects(stream.labels))

    async def labels(self, request: web.Request) -> web.Response:
        """Label names."""
        found = {name for labels in self._labels(request) for name, _ in labels}
        return _json({"status": "success", "data": sorted(found)})

    async def label_values(self, request: web.Request) -> web.Response:
        """Values of one label."""
        wanted = request.match_info["name"]
        found = {value for labels in self._labels(request) for name, value in labels if name == wanted}
        return _json({"status": "success", "data": sorted(found)})

    async def series(self, request: web.Request) -> web.Response:
        """Streams by selector."""
        start, end = self._span(request)
        queries = [parse_logs(text) for text in request.query.getall("match[]", request.query.getall("match", []))]
        streams = self.source.streams(start.world, end.world)
        found = sorted({each.labels for each in streams if not queries or any(q.selects(each.labels) for q in queries)})
        return _json({"status": "success", "data": [dict(labels) for labels in found]})

    async def buildinfo(self, _: web.Request) -> web.Response:
        """The version whose answers these are."""
        return _json(build_facts(VERSION))


def _streams(lines: list[Line], pacer: Pacer) -> bytes:
    by_stream: dict[Labels, list[list[str]]] = {}
    for line in lines:
        stamp = round(pacer.to_wire(line.t) * 1e6) * 1000
        ahead_s = round(pacer.to_wire(line.t) - unix(line.t))
        by_stream.setdefault(line.labels, []).append([str(stamp), shift_text(line.text, ahead_s)])
    shown = [{"stream": dict(labels), "values": values} for labels, values in by_stream.items()]
    return orjson.dumps({"resultType": "streams", "result": shown, "stats": {}})


def _answer(data: bytes) -> web.Response:
    return web.Response(body=b'{"status":"success","data":' + data + b"}", content_type="application/json")


def _json(data: Any) -> web.Response:
    return web.Response(body=orjson.dumps(data), content_type="application/json")


def loki_app(
    source: LogSource, pacer: Pacer, outside: Callable[[web.Request], bool] = lambda _: True
) -> web.Application:
    """The application; errors are plain text with status 400, as Loki sends them."""
    api = LokiApi(source, pacer)
    app = application()

    def served(
        handler: Callable[[web.Request], Awaitable[web.Response]],
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def serve(request: web.Request) -> web.Response:
            pacer.enter(outside=outside(request), free=handler == api.buildinfo)
            try:
                return await handler(request)
            except ApiFault as fault:
                return web.Response(text=fault.text + "\n", status=400)
            except UsageError as error:
                return web.Response(text=f"{error}\n", status=400)

        return serve

    async def ready(_: web.Request) -> web.Response:
        return web.Response(text="ready\n")

    for path, handler in (
        ("query_range", api.query_range),
        ("query", api.query),
        ("labels", api.labels),
        ("label", api.labels),
        ("label/{name}/values", api.label_values),
        ("series", api.series),
        ("status/buildinfo", api.buildinfo),
    ):
        app.router.add_get(f"/loki/api/v1/{path}", served(handler))
    app.router.add_get("/ready", ready)
    return app
