"""The state that all handlers of one API server share, and one request as they see it."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson
from aiohttp import web

from itbench.kube.api.answers import Form, encode, negotiate, respond, wants_pretty
from itbench.kube.api.lists import Lists
from itbench.kube.api.outside import Weave
from itbench.kube.api.paths import Target
from itbench.kube.api.times import DoorClock
from itbench.kube.api.tokens import Tokens
from itbench.kube.audit import AuditRecord
from itbench.kube.client import Obj
from itbench.kube.door import NodeDoor, Pacer
from itbench.kube.rbac import Authorizer, User
from itbench.kube.registry import Registry
from itbench.kube.resources import Resource

PUSH_S = 900.0
NAP_S = 0.05
REST_S = 0.25
"""Wall seconds that a client has to react to what it was sent, before its blocked request moves the world."""


class Plane(Protocol):
    """What the API server needs of a control plane (`itbench.kube.plane.ControlPlane`)."""

    registry: Registry
    audit: list[AuditRecord]
    name: str


class Door:
    """One API server: its plane, the world's pace and node door, identities, and the watchers to wake."""

    def __init__(
        self, plane: Plane, pacer: Pacer, nodes: NodeDoor | None, tokens: Tokens, authorizer: Authorizer
    ) -> None:
        self.plane, self.pacer, self.nodes = plane, pacer, nodes
        self.tokens, self.authorizer = tokens, authorizer
        self.registry = plane.registry
        self.store = plane.registry.store
        self.clock = DoorClock(pacer)
        self.lists = Lists(self.store, self.clock)
        self.weave = Weave((), self.clock.served)
        self.closing = asyncio.Event()
        self._changed = asyncio.Event()
        self._seen = self.store.revision

    def poke(self) -> None:
        """Wake the watchers if anything was written since the last call."""
        if self.store.revision != self._seen:
            self._seen = self.store.revision
            self._changed.set()
            self._changed = asyncio.Event()

    def changed(self) -> asyncio.Event:
        """An event that is set at the next write."""
        return self._changed

    async def wait(self, until: float, event: asyncio.Event, patience: "Patience") -> None:
        """Until something was written, the world went on, or the server closes; at most to world second `until`."""
        pace = self.pacer.wait(until) if patience.pushes() else self._nap()
        waits = (event.wait(), self.closing.wait(), pace)
        tasks = [asyncio.ensure_future(one) for one in waits]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        self.poke()

    async def _nap(self) -> None:
        """Follow the clock without pushing it."""
        await asyncio.sleep(NAP_S)
        self.pacer.enter(outside=False, free=True)


class Patience:
    """When a blocked request may push a stepped clock on, and how far ahead of the wall.

    A client that has just been told something first gets `REST_S` of wall time to react: what it was waiting for may have
    come, and a world that went on meanwhile would end at a second that depends on how busy the machine is.
    A client that gives up after some seconds of its own (`kubectl wait --timeout=5s`) does not say so to the server; without
    a bound its watch would run the world for hours. A request may push by `PUSH_S`, which is beyond the progress deadline of
    a Deployment; after that time passes only as the clock's mode says.
    """

    def __init__(self, pacer: Pacer, wall: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._pacer, self._world, self._start = pacer, pacer.now(), wall()
        self._told = self._start

    def told(self) -> None:
        """The client has just been sent something."""
        self._told = self._wall()

    def pushes(self) -> bool:
        """Whether the request may let the world go on now."""
        wall = self._wall()
        return wall - self._told >= REST_S and self._pacer.now() - self._world <= PUSH_S + wall - self._start


@dataclass(slots=True)
class Trace:
    """What the audit log will say of a request besides what its path says."""

    before: Obj | None = None
    after: Obj | None = None
    manager: str = ""
    dry: bool = False
    detail: str = ""
    name: str = ""
    told: bool = False
    notes: list[str] = field(default_factory=list)


class Call:
    """One request, authenticated and authorized.

    Attributes:
        user: as whom it acts; `asker`: who authenticated, the same unless he impersonates.
    """

    def __init__(self, door: Door, request: web.BaseRequest, target: Target, user: User, verb: str) -> None:
        self.door, self.request, self.target, self.user, self.verb = door, request, target, user, verb
        self.asker = user
        self.query: dict[str, str] = dict(request.query) if "?" in request.raw_path else {}
        self.trace = Trace()
        self._resource: Resource | None = None

    @property
    def form(self) -> Form:
        """The form that the client wants; raises 406."""
        return negotiate(self.request.headers.get("Accept", ""), self.verb in ("list", "watch"))

    @property
    def agent(self) -> str:
        """The client program, from User-Agent."""
        return self.request.headers.get("User-Agent", "")

    @property
    def content_type(self) -> str:
        """Content-Type as sent."""
        return self.request.headers.get("Content-Type", "")

    @property
    def resource(self) -> Resource:
        """The resource of the path; the caller has checked that it is served."""
        if self._resource is None:
            target = self.target
            self._resource = self.door.registry.table.lookup(target.group, target.version, target.plural)
            assert self._resource is not None
        return self._resource

    def flag(self, name: str) -> bool:
        """Whether a boolean query parameter is set."""
        return self.query.get(name, "") in ("true", "1", "True")

    def answer(self, value: Any, code: int = 200, warnings: "list[str] | tuple[str, ...]" = ()) -> web.Response:
        """An object in the form asked for, times translated."""
        form = Form("yaml") if self.form.kind == "yaml" else Form("json")
        body = self.door.clock.served(encode(value, Form("json")))
        return self.wrap(body, code, form, warnings)

    def wrap(self, body: bytes, code: int, form: Form, warnings: "list[str] | tuple[str, ...]") -> web.Response:
        """JSON bytes, times translated already, in the form asked for."""
        if form.kind == "yaml" or wants_pretty(self.query, self.agent):
            body = encode(orjson.loads(body), form, pretty=True)
        return respond(body, code, form=form, warnings=warnings)
