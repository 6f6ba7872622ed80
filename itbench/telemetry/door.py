"""What the telemetry servers need from the clock of a trial, and the parameters that clients send.

The protocol is a part of `itbench.kube.door.Pacer`, repeated here because the two rooms do not know each other.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isnan
from typing import Protocol

import orjson
from aiohttp import web

from itbench.core.clock import unix
from itbench.telemetry.promql.gotext import parse_duration_ns


class Pacer(Protocol):
    """Lets world time pass on behalf of requests and translates times (wire now is wall now)."""

    def enter(self, *, outside: bool, free: bool) -> None:
        """Called before a request is served: the world catches up with the clock."""

    def now(self) -> float:
        """World seconds."""

    def to_wire(self, world: float) -> float:
        """World seconds -> Unix seconds that a client should see."""

    def from_wire(self, wire: float) -> float:
        """Unix seconds that a client sent -> world seconds."""


STATUS = {"bad_data": 400, "execution": 422, "not_found": 404, "internal": 500}
"""HTTP status by type of error."""


class ApiFault(Exception):
    """An answer that is an error of the Prometheus API."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind, self.text = kind, text
        super().__init__(text)

    def response(self) -> web.Response:
        """The error as JSON."""
        body = {"status": "error", "errorType": self.kind, "error": self.text}
        return web.Response(body=orjson.dumps(body), status=STATUS[self.kind], content_type="application/json")


@dataclass(frozen=True, slots=True)
class Moment:
    """A time that a client named: world seconds, and what the client called it."""

    world: float
    wire: float

    @property
    def epoch_s(self) -> float:
        """Unix seconds that stand for world second 0 in the answer."""
        return self.wire - self.world

    @property
    def shift_s(self) -> float:
        """How far the client's calendar is ahead of the world's own."""
        return self.epoch_s - unix(0.0)


_NANOS = re.compile(r"(\.\d{6})\d+")


def parse_time(text: str) -> float | None:
    """Unix seconds from a number or an RFC 3339 time; None if it is neither."""
    try:
        return round(float(text), 3) if abs(float(text)) < 1e15 else None
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(_NANOS.sub(r"\1", text))
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo is not None else None


def parse_span(text: str) -> float | None:
    """Seconds from a number or a duration such as `1m30s`; None if it is neither."""
    try:
        seconds = float(text)
    except ValueError:
        pass
    else:
        # Go makes the least duration of NaN, and refuses what overflows 64 bits of nanoseconds.
        return -(2.0**63) / 1e9 if isnan(seconds) else seconds if abs(seconds) < 2.0**63 / 1e9 else None
    try:
        return parse_duration_ns(text) / 1e9
    except ValueError:
        return None


def moment_of(pacer: Pacer, params: Mapping[str, str], name: str, default: float | None = None) -> Moment:
    """The time parameter `name`.

    Args:
        pacer: translates.
        params: of the request.
        name: of the parameter.
        default: world seconds where the client names no time; without it the parameter is required.

    Raises:
        ApiFault: it cannot be parsed.
    """
    text = params.get(name, "")
    if not text and default is not None:
        return Moment(default, pacer.to_wire(default))
    wire = parse_time(text)
    if wire is None:
        optional = f"invalid time value for '{name}': " if default is not None else ""
        raise ApiFault("bad_data", f'invalid parameter "{name}": {optional}cannot parse "{text}" to a valid timestamp')
    return Moment(pacer.from_wire(wire), wire)


def show_time(wire: float) -> str:
    """Unix seconds as RFC 3339 with milliseconds, as the APIs print times."""
    return datetime.fromtimestamp(round(wire, 3), UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def success(data: object, **notes: Sequence[str]) -> web.Response:
    """`{"status": "success", "data": ...}`; bytes are JSON already; `notes` are `warnings` and `infos`, left out where empty."""
    body = data if isinstance(data, bytes) else orjson.dumps(data)
    rest = b"".join(b',"' + name.encode() + b'":' + orjson.dumps(each) for name, each in notes.items() if each)
    return web.Response(body=b'{"status":"success","data":' + body + rest + b"}", content_type="application/json")


def build_facts(version: str) -> dict[str, str]:
    """What a program of Prometheus' family tells of its build; nothing but the version is known here."""
    return {"version": version, "revision": "", "branch": "HEAD", "buildUser": "", "buildDate": "", "goVersion": ""}


def application(client_max_size: int = 1 << 20) -> web.Application:
    """An application whose answers do not name the program that really serves them."""
    app = web.Application(client_max_size=client_max_size)
    app.on_response_prepare.append(_without_server)
    return app


async def _without_server(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.pop("Server", None)
