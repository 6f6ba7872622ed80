"""The front of an AWS account: the only door that agents, Ansible and graders have. Started by the account driver.

It knows identities, refuses what their roles forbid, keeps the audit log, answers CloudTrail's LookupEvents from it, hides moto's
administration, and turns what is not supported into an AWS error that is counted as a gap in coverage.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any

from aiohttp import web

from itbench.cloud import wire
from itbench.cloud.access import SERVICES, Identity, allowed
from itbench.cloud.process import AccountProcess
from itbench.cloud.trail import Event, lookup
from itbench.core.clock import unix
from itbench.core.ids import digest

MAX_BODY = 64 * 2**20
_NAMES = (
    "VolumeId",
    "InstanceId",
    "InstanceId.1",
    "GroupId",
    "SnapshotId",
    "PrefixListId",
    "AllocationId",
    "ResourceId.1",
    "DBInstanceIdentifier",
)


@dataclass(frozen=True)
class Record:
    """One call that came in: when (world seconds), by whom, what, with what result."""

    t: float
    user: str
    role: str
    service: str
    region: str
    action: str
    name: str
    params: str
    """Digest of the parameters."""
    code: int
    error: str = ""
    reads: bool = True


@dataclass(frozen=True)
class Entry:
    """A call of the journal: all that it takes to make the account again."""

    unix: float
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    service: str
    action: str
    params: dict[str, str]
    region: str


@dataclass
class Front:
    """A door on the loopback.

    Args:
        process: the account.
        now: world seconds.
        paced: bracket of a request from outside: pays for a step.

    Attributes:
        staging: Ansible at work: times in headers are believed, nothing is recorded as anybody's deed.
        history: CloudTrail events of the time before hand-over.
    """

    process: AccountProcess
    now: Callable[[], float]
    paced: Callable[[bool], AbstractContextManager[None]] = field(default=lambda reads: nullcontext())
    staging: bool = True
    identities: dict[str, Identity] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    journal: list[Entry] = field(default_factory=list)
    history: list[Event] = field(default_factory=list)
    gaps: dict[str, int] = field(default_factory=dict)
    port: int = 0
    _runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        """Where clients send their requests."""
        return f"http://127.0.0.1:{self.port}"

    def admit(self, *identities: Identity) -> None:
        """Let identities in."""
        self.identities |= {identity.key: identity for identity in identities}

    def expel(self, name: str) -> None:
        """An identity's keys work no longer."""
        self.identities = {key: one for key, one in self.identities.items() if one.name != name}

    async def start(self) -> None:
        """Listen on a free port of the loopback."""
        runner = web.ServerRunner(web.Server(self._handle, access_log=None))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        self._runner = runner

    async def close(self) -> None:
        """Stop listening."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def replay(self, journal: Iterable[dict[str, Any]]) -> None:
        """Make the account again from a saved journal."""
        for saved in journal:
            entry = Entry(**saved)
            await self.process.ask({"op": "http", **asdict(entry)})
            self.journal.append(entry)

    def saved_journal(self) -> list[dict[str, Any]]:
        """The journal as plain data."""
        return [asdict(entry) for entry in self.journal]

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.content.read(MAX_BODY)
        parts = wire.read(request.method, request.raw_path, dict(request.headers), body)
        if wire.closed(request.raw_path):
            return web.Response(status=404, text="Not Found")
        identity = self.identities.get(parts.key)
        if identity is None or not wire.signed(parts, identity.secret):
            return self._refused(parts, 403, *_credentials(parts))
        if self.staging:
            return await self._answer(parts, identity)
        with self.paced(parts.reads) if identity.role != "admin" else nullcontext():
            return await self._answer(parts, identity)

    async def _answer(self, parts: wire.Wire, identity: Identity) -> web.Response:
        if not allowed(identity, parts.service, parts.action, reads=parts.reads):
            return self._record(parts, identity, self._refused(parts, 403, *_denied(parts, identity)), "AccessDenied")
        if parts.service == "cloudtrail" and parts.action == "LookupEvents":
            return self._record(parts, identity, web.json_response(lookup(parts.body, self._events())))
        if parts.service not in SERVICES:
            return self._gap(parts, identity)
        moment = unix(self.now())
        if self.staging and wire.TIME_HEADER in parts.headers:
            moment = float(parts.headers[wire.TIME_HEADER])
        entry = Entry(
            moment,
            parts.method,
            parts.path,
            parts.query,
            parts.forwarded,
            parts.body,
            parts.service,
            parts.action,
            parts.params,
            parts.region,
        )
        answer = await self.process.ask({"op": "http", **asdict(entry)})
        self.journal.append(entry)  # reads too: some of them draw identifiers
        if "refused" in answer:
            code, message = answer["refused"]
            return self._record(parts, identity, self._refused(parts, 400, code, message), code)
        if answer["status"] >= 500 or "html" in answer["type"]:
            return self._gap(parts, identity)
        headers = answer.get("headers", {}) | {"Content-Type": answer["type"] or "text/xml"}
        return self._record(
            parts, identity, web.Response(status=answer["status"], body=answer["body"], headers=headers)
        )

    def _events(self) -> list[Event]:
        own = [
            Event(record.t, record.user, record.service, record.action, record.name)
            for record in self.records
            if not record.reads and record.code < 400
        ]
        return [*self.history, *own]

    def _gap(self, parts: wire.Wire, identity: Identity) -> web.Response:
        what = f"{parts.service}:{parts.action or parts.method}"
        self.gaps[what] = self.gaps.get(what, 0) + 1
        message = f"{what} is not available in this account"
        return self._record(parts, identity, self._refused(parts, 400, "UnsupportedOperation", message), "gap")

    def _refused(self, parts: wire.Wire, status: int, code: str, message: str) -> web.Response:
        kind, body = wire.error(parts, code, message)
        return web.Response(status=status, body=body, headers={"Content-Type": kind})

    def _record(self, parts: wire.Wire, identity: Identity, response: web.Response, error: str = "") -> web.Response:
        if not self.staging:
            name = next((parts.params[key] for key in _NAMES if key in parts.params), "") or parts.path.strip("/")
            params = digest(sorted(parts.params.items()), parts.query, parts.body if not parts.params else b"").hex()[
                :16
            ]
            action = parts.action or parts.method
            self.records.append(
                Record(
                    self.now(),
                    identity.name,
                    identity.role,
                    parts.service,
                    parts.region,
                    action,
                    name,
                    params,
                    response.status,
                    error,
                    parts.reads,
                )
            )
        return response


def _credentials(parts: wire.Wire) -> tuple[str, str]:
    if parts.service == "ec2":
        return "AuthFailure", "AWS was not able to validate the provided access credentials"
    return "InvalidClientTokenId", "The security token included in the request is invalid."


def _denied(parts: wire.Wire, identity: Identity) -> tuple[str, str]:
    code = "UnauthorizedOperation" if parts.service == "ec2" else "AccessDenied"
    return code, f"User {identity.name} is not authorized to perform: {parts.service}:{parts.action}"
