"""The part of Alertmanager that agents touch: alerts by state, and silences, which graders read afterwards."""

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from aiohttp import web

from itbench.core.errors import UsageError
from itbench.core.ids import Ids
from itbench.telemetry.door import Pacer, application, build_facts, parse_time, show_time
from itbench.telemetry.labels import Matcher
from itbench.telemetry.rules import RuleEngine

VERSION = "0.28.1"


@dataclass(slots=True)
class Silence:
    """Alerts that match stay quiet. Times are world seconds.

    Attributes:
        matchers: (name, op, value), op as in PromQL.
        deleted_at: -1 while nobody ended it early.
    """

    id: str
    matchers: list[tuple[str, str, str]]
    starts_at: float
    ends_at: float
    created_by: str
    comment: str
    updated_at: float
    deleted_at: float = -1.0

    def state(self, now: float) -> str:
        """`pending`, `active` or `expired`."""
        if now >= self.ends_at:
            return "expired"
        return "active" if now >= self.starts_at else "pending"

    def covers(self, labels: Mapping[str, str]) -> bool:
        """Whether it would silence an alert with these labels."""
        return all(Matcher(*each).accepts(labels.get(each[0], "")) for each in self.matchers)


class Silences:
    """All silences ever made, ended ones too: what an agent silenced is part of what it did."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._all: dict[str, Silence] = {}

    def all(self) -> list[Silence]:
        """In the order of their creation."""
        return list(self._all.values())

    def find(self, ident: str) -> Silence | None:
        """The silence with this id."""
        return self._all.get(ident)

    def set(self, data: Mapping[str, Any], starts_at: float, ends_at: float, now: float) -> str:
        """Create a silence, or replace the one that `data` names.

        Args:
            data: a silence as the API takes it.
            starts_at, ends_at, now: world seconds.

        Returns:
            Its id.

        Raises:
            UsageError: it is not a silence.
        """
        matchers = [_matcher(each) for each in data.get("matchers") or []]
        if not matchers:
            raise UsageError("invalid silence: at least one matcher required")
        if all(Matcher(*each).accepts("") for each in matchers):
            raise UsageError("invalid silence: at least one matcher must not match the empty string")
        if ends_at <= starts_at:
            raise UsageError("failed to create silence: end time must be after start time")
        if ends_at < now:
            raise UsageError("failed to create silence: end time can't be in the past")
        ident = str(data.get("id") or "")
        if ident and ident not in self._all:
            raise UsageError("silence not found")
        if not ident:
            ident = self._ids.uid("silence")
        by, comment = str(data.get("createdBy") or ""), str(data.get("comment") or "")
        self._all[ident] = Silence(ident, matchers, max(starts_at, now), ends_at, by, comment, now)
        return ident

    def expire(self, ident: str, now: float) -> bool:
        """End a silence at world second `now`; False if it is not known."""
        silence = self._all.get(ident)
        if silence is None:
            return False
        if silence.state(now) != "expired":
            silence.ends_at = silence.updated_at = silence.deleted_at = now
        return True

    def silencing(self, labels: Mapping[str, str], now: float) -> list[str]:
        """Ids of the active silences that cover an alert."""
        return [each.id for each in self._all.values() if each.state(now) == "active" and each.covers(labels)]

    def save(self) -> list[dict[str, Any]]:
        """Plain data."""
        return [asdict(each) for each in self._all.values()]

    def restore(self, data: Iterable[Mapping[str, Any]]) -> None:
        """The inverse of `save`, into a new store: silences made later get ids of their own."""
        kept = [Silence(**{**each, "matchers": [tuple(m) for m in each["matchers"]]}) for each in data]
        self._all = {each.id: each for each in kept}
        for _ in kept:
            self._ids.uid("silence")


def _matcher(data: Mapping[str, Any]) -> tuple[str, str, str]:
    name, value = str(data.get("name") or ""), str(data.get("value") or "")
    if not name:
        raise UsageError("invalid silence: invalid label matcher: empty name")
    op = (
        ("=~" if data.get("isRegex") else "=") if data.get("isEqual", True) else ("!~" if data.get("isRegex") else "!=")
    )
    Matcher(name, op, value)
    return name, op, value


def fingerprint(labels: Mapping[str, str]) -> str:
    """Sixteen hexadecimal digits that stand for a label set."""
    return hashlib.sha256(orjson.dumps(labels, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


@dataclass(frozen=True)
class AlertmanagerApi:
    """The handlers over the alerts of a rule engine."""

    rules: RuleEngine
    silences: Silences
    pacer: Pacer
    outside: Callable[[web.Request], bool]

    def _time(self, world: float) -> str:
        return show_time(self.pacer.to_wire(world))

    def _alert(self, alert: Mapping[str, Any], now: float) -> dict[str, Any]:
        by = self.silences.silencing(alert["labels"], now)
        state = {"state": "suppressed" if by else "active", "silencedBy": by, "inhibitedBy": [], "mutedBy": []}
        return {
            "annotations": alert["annotations"],
            "endsAt": self._time(now + 240.0),
            "fingerprint": fingerprint(alert["labels"]),
            "receivers": [{"name": "default"}],
            "startsAt": self._time(alert["fired_at"]),
            "status": state,
            "updatedAt": self._time(now),
            "generatorURL": "",
            "labels": alert["labels"],
        }

    async def alerts(self, request: web.Request) -> web.Response:
        """Firing alerts, by the filters of the request."""
        now, query = self.pacer.now(), request.query
        shown = [self._alert(alert, now) for alert in self.rules.alerts(("firing",))]
        wanted = {
            name for name, key in (("active", "active"), ("suppressed", "silenced")) if query.get(key, "true") == "true"
        }
        filters = [parse_filter(text) for text in query.getall("filter", [])]
        found = [
            each
            for each in shown
            if each["status"]["state"] in wanted and all(m.accepts(each["labels"].get(m.name, "")) for m in filters)
        ]
        return _json(sorted(found, key=lambda each: str(each["fingerprint"])))

    async def groups(self, request: web.Request) -> web.Response:
        """Firing alerts by alert name."""
        now = self.pacer.now()
        by_name: dict[str, list[dict[str, Any]]] = {}
        for alert in self.rules.alerts(("firing",)):
            by_name.setdefault(alert["labels"]["alertname"], []).append(self._alert(alert, now))
        receiver = {"name": "default"}
        return _json(
            [{"labels": {"alertname": n}, "receiver": receiver, "alerts": each} for n, each in by_name.items()]
        )

    def _silence(self, silence: Silence) -> dict[str, Any]:
        matchers = [
            {"name": name, "value": value, "isRegex": "~" in op, "isEqual": op[0] == "="}
            for name, op, value in silence.matchers
        ]
        return {
            "id": silence.id,
            "status": {"state": silence.state(self.pacer.now())},
            "updatedAt": self._time(silence.updated_at),
            "comment": silence.comment,
            "createdBy": silence.created_by,
            "endsAt": self._time(silence.ends_at),
            "matchers": matchers,
            "startsAt": self._time(silence.starts_at),
        }

    async def list_silences(self, _: web.Request) -> web.Response:
        """All silences."""
        return _json([self._silence(each) for each in self.silences.all()])

    async def get_silence(self, request: web.Request) -> web.Response:
        """One silence."""
        silence = self.silences.find(request.match_info["id"])
        return _json(self._silence(silence)) if silence else web.Response(status=404)

    async def set_silence(self, request: web.Request) -> web.Response:
        """Create or replace a silence."""
        try:
            data = orjson.loads(await request.read())
        except orjson.JSONDecodeError as error:
            return _json({"code": 400, "message": f"parsing silence body failed: {error}"}, 400)
        if not isinstance(data, dict):
            return _json({"code": 400, "message": "parsing silence body failed: not an object"}, 400)
        times = {}
        for name in ("startsAt", "endsAt"):
            wire = parse_time(str(data.get(name) or ""))
            if wire is None:
                return _json({"code": 602, "message": f"{name} in body is required"}, 422)
            times[name] = self.pacer.from_wire(wire)
        try:
            ident = self.silences.set(data, times["startsAt"], times["endsAt"], self.pacer.now())
        except UsageError as error:
            return _json(str(error), 404 if "not found" in str(error) else 400)
        return _json({"silenceID": ident})

    async def delete_silence(self, request: web.Request) -> web.Response:
        """End a silence."""
        known = self.silences.expire(request.match_info["id"], self.pacer.now())
        return web.Response(status=200 if known else 404)

    async def status(self, _: web.Request) -> web.Response:
        """Version and configuration."""
        shown = {
            "cluster": {"name": "", "status": "ready", "peers": []},
            "config": {"original": "route:\n  receiver: default\nreceivers:\n- name: default\n"},
            "uptime": self._time(0.0),
            "versionInfo": build_facts(VERSION),
        }
        return _json(shown)

    async def receivers(self, _: web.Request) -> web.Response:
        """Who is told."""
        return _json([{"name": "default"}])


def parse_filter(text: str) -> Matcher:
    """A matcher as `amtool` and the API write it: `name="value"`, quotes optional."""
    for op in ("!=", "=~", "!~", "="):
        name, found, value = text.partition(op)
        if found and not set(name) & set("=!~"):
            return Matcher(name.strip(), op, value.strip().strip('"'))
    raise web.HTTPBadRequest(text=f"bad matcher format: {text}")


def _json(data: object, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(data), status=status, content_type="application/json")


def alertmanager_app(
    rules: RuleEngine, silences: Silences, pacer: Pacer, outside: Callable[[web.Request], bool] = lambda _: True
) -> web.Application:
    """The application: `/api/v2/alerts`, `alerts/groups`, `silences`, `silence/<id>`, `status`, `receivers`."""
    api = AlertmanagerApi(rules, silences, pacer, outside)
    app = application()

    def served(
        handler: Callable[[web.Request], Awaitable[web.Response]],
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def serve(request: web.Request) -> web.Response:
            pacer.enter(outside=outside(request), free=handler == api.status)
            return await handler(request)

        return serve

    async def healthy(_: web.Request) -> web.Response:
        return web.Response(text="OK")

    for path, handler in (
        ("alerts", api.alerts),
        ("alerts/groups", api.groups),
        ("silences", api.list_silences),
        ("silence/{id}", api.get_silence),
        ("status", api.status),
        ("receivers", api.receivers),
    ):
        app.router.add_get(f"/api/v2/{path}", served(handler))
    app.router.add_post("/api/v2/silences", served(api.set_silence))
    app.router.add_delete("/api/v2/silence/{id}", served(api.delete_silence))
    app.router.add_get("/-/healthy", healthy)
    app.router.add_get("/-/ready", healthy)
    return app
