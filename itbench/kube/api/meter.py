"""`/metrics` of the API server: what it served, as the series that dashboards of real clusters read; called by `server`.

Durations are wall seconds of this server. Series are counted from its start and are no part of the world's state.
"""

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from aiohttp import web

from itbench.kube.api import public
from itbench.kube.api.answers import Reply
from itbench.kube.api.door import Call
from itbench.kube.api.flows import LONG, Flow
from itbench.kube.api.paths import Target
from itbench.kube.api.wire import WireRequest
from itbench.kube.store import Store

Labels = tuple[tuple[str, str], ...]
KIND = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
SECONDS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60)
BYTES = tuple(10.0**power for power in range(3, 10))
VERBS = {"create": "POST", "update": "PUT"}
_WRITES = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})
_NAMED = frozenset({"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"})
"""Users who are counted by name."""
_DRY = {False: ("dry_run", ""), True: ("dry_run", "All")}
_KEPT = 4096
_PLAIN = ("healthz", "livez", "readyz", "metrics", "version")
"""Paths that are counted as subresources with their slash; discovery is counted without."""


HELP = {
    "apiserver_audit_event_total": "[ALPHA] Audit events generated.",
    "apiserver_current_inflight_requests": "[STABLE] Requests that are being served, per request kind.",
    "apiserver_flowcontrol_dispatched_requests_total": "[BETA] Requests executed, per flow schema and priority level.",
    "apiserver_longrunning_requests": "[STABLE] Active long-running requests.",
    "apiserver_request_duration_seconds": "[STABLE] Response latency in seconds.",
    "apiserver_request_total": "[STABLE] Requests by verb, resource, scope and response code.",
    "apiserver_resource_objects": "[ALPHA] Stored objects, per group and resource.",
    "apiserver_response_sizes": "[STABLE] Response size in bytes.",
    "apiserver_storage_objects": "[STABLE] Stored objects, per resource.",
    "apiserver_watch_cache_resource_version": "[ALPHA] Current resource version, per resource.",
    "authenticated_user_requests": "[ALPHA] Authenticated requests, per user name.",
    "authentication_attempts": "[ALPHA] Attempts to authenticate, per result.",
    "kubernetes_build_info": "[ALPHA] Version from which the server was built; always 1.",
}


@dataclass(slots=True)
class Histogram:
    """Observations by bucket."""

    bounds: tuple[float, ...]
    counts: list[int] = field(init=False)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


@dataclass(slots=True)
class Row:
    """What was served of one kind of request.

    Attributes:
        running: whether it is counted as `mutating` or `readOnly` while it runs.
        counts, seconds: by (status, whether dry) and by whether dry.
    """

    series: Labels
    running: str
    long: bool
    counts: Counter[tuple[int, bool]] = field(default_factory=Counter)
    seconds: dict[bool, Histogram] = field(default_factory=dict)
    sizes: Histogram = field(default_factory=lambda: Histogram(BYTES))
    sized: int = 0
    open: int = 0


class Meter:
    """Counts of one server."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.rows: dict[Labels, Row] = {}
        self._found: dict[tuple[Target, str], Row] = {}
        self.running: Counter[str] = Counter({"mutating": 0, "readOnly": 0})
        self.callers: Counter[tuple[str, Flow | None]] = Counter()
        self.strangers = 0

    def begin(self, call: Call) -> tuple[Row, float]:
        """A request arrives -> its row, and when, for `end`."""
        row = self._row(call)
        self.running[row.running] += 1
        row.open += 1
        return row, self.clock()

    def end(self, call: Call, answer: web.StreamResponse | None, begun: tuple[Row, float]) -> None:
        """It was answered, or its client went away (None)."""
        (row, start), dry = begun, call.trace.dry
        self.running[row.running] -= 1
        row.open -= 1
        if answer is None or (not call.target.plural and answer.status == 404):
            return
        status = answer.status
        row.counts[status, dry] += 1
        flow = call.request.flow if isinstance(call.request, WireRequest) else None
        if status == 401:
            self.strangers += 1
        self.callers["" if status == 401 else call.asker.name, flow] += 1
        if not row.long:
            seconds = row.seconds.get(dry)
            if seconds is None:
                seconds = row.seconds[dry] = Histogram(SECONDS)
            seconds.observe(self.clock() - start)
            body = answer.body if type(answer) is Reply or isinstance(answer, web.Response) else None
            if isinstance(body, bytes):
                row.sized += 1
                row.sizes.observe(float(len(body)))

    def _row(self, call: Call) -> Row:
        """The row of a request; targets of one kind share it."""
        verb = _verb(call)
        key = (call.target, verb)
        row = self._found.get(key)
        if row is None:
            if len(self._found) >= _KEPT:
                self._found.clear()
            series = _series(call.target, verb, create=call.verb == "create")
            new = Row(series, "mutating" if verb in _WRITES else "readOnly", _is_long(call))
            row = self._found[key] = self.rows.setdefault(series, new)
        return row


def _is_long(call: Call) -> bool:
    return call.verb == "watch" or call.target.subresource in LONG


def _verb(call: Call) -> str:
    sub = call.target.subresource
    if sub in LONG and sub != "log":
        return "CONNECT"
    if call.verb == "patch" and call.content_type.startswith("application/apply-patch"):
        return "APPLY"
    return VERBS[call.verb] if call.verb in VERBS else call.verb.upper()


def _series(target: Target, verb: str, *, create: bool) -> Labels:
    sub, component = target.subresource, "apiserver"
    if not target.plural:
        first = target.path.strip("/").split("/")[0]
        sub, component = (f"/{first}", "") if first in _PLAIN else (first, "apiserver" if "api" in first else "")
    scope = "resource" if target.name or create else "namespace" if target.namespace else "cluster"
    return (
        ("component", component),
        ("group", target.group),
        ("resource", target.plural),
        ("scope", scope if target.plural else ""),
        ("subresource", sub),
        ("verb", verb),
        ("version", target.version),
    )


# -- the text --------------------------------------------------------------------------------------------------------------


def serve(meter: Meter, store: Store) -> web.Response:
    """`GET /metrics`: families by name, series by labels, in the text format of Prometheus."""
    families = sorted(_families(meter, store), key=lambda family: family[0])
    text = "".join(f"{line}\n" for _, lines in families for line in lines)
    return web.Response(body=text.encode(), headers={"Content-Type": KIND})


def _families(meter: Meter, store: Store) -> Iterator[tuple[str, Iterable[str]]]:
    rows = meter.rows.values()
    requests: dict[Labels, int] = {
        (("code", str(code)), _DRY[dry], *row.series): count
        for row in rows
        for (code, dry), count in row.counts.items()
    }
    yield _family("apiserver_request_total", "counter", requests)
    seconds: dict[Labels, Histogram] = {
        (_DRY[dry], *row.series): found for row in rows for dry, found in row.seconds.items()
    }
    yield _histogram("apiserver_request_duration_seconds", seconds)
    yield _histogram("apiserver_response_sizes", {row.series: row.sizes for row in rows if row.sized})
    kinds: dict[Labels, int] = {(("request_kind", kind),): count for kind, count in meter.running.items()}
    yield _family("apiserver_current_inflight_requests", "gauge", kinds)
    yield _family("apiserver_longrunning_requests", "gauge", {row.series: row.open for row in rows if row.long})
    yield from _callers(meter)
    yield _family("apiserver_audit_event_total", "counter", {(): sum(requests.values())})
    stored = {resource: len(store.list(resource)) for resource in store.resources()}
    old, new = "apiserver_storage_objects", "apiserver_resource_objects"
    plain: dict[Labels, int] = {(("resource", name),): count for name, count in stored.items()}
    yield _family(old, "gauge", plain)
    yield _family(new, "gauge", {_split(name): count for name, count in stored.items()})
    revisions = {_split(name): store.revision for name in stored}
    yield _family("apiserver_watch_cache_resource_version", "gauge", revisions)
    yield _family("kubernetes_build_info", "gauge", {_build(): 1})


def _callers(meter: Meter) -> Iterator[tuple[str, Iterable[str]]]:
    flows: Counter[Labels] = Counter()
    users: Counter[Labels] = Counter()
    known = 0
    for (name, flow), count in sorted(meter.callers.items(), key=lambda pair: pair[0][0]):
        if flow is not None:
            flows[(("flow_schema", flow.schema), ("priority_level", flow.level))] += count
        if name:
            known += count
            users[(("username", name if name in _NAMED else "email_id" if "@" in name else "other"),)] += count
    yield _family("apiserver_flowcontrol_dispatched_requests_total", "counter", flows)
    yield _family("authenticated_user_requests", "counter", users)
    counts = {"failure": meter.strangers, "success": known}
    logins: dict[Labels, int] = {(("result", result),): count for result, count in counts.items() if count}
    yield _family("authentication_attempts", "counter", logins)


def _build() -> Labels:
    rows = public.version()
    names = {"gitVersion": "git_version", "gitCommit": "git_commit", "gitTreeState": "git_tree_state"}
    names |= {"buildDate": "build_date", "goVersion": "go_version"}
    names |= {name: name for name in ("major", "minor", "compiler", "platform")}
    return tuple((label, rows[key]) for key, label in names.items())


def _split(qualified: str) -> Labels:
    plural, _, group = qualified.partition(".")
    return ("group", group), ("resource", plural)


def _family(name: str, kind: str, rows: Mapping[Labels, float]) -> tuple[str, Iterable[str]]:
    head = [f"# HELP {name} {HELP[name]}", f"# TYPE {name} {kind}"]
    return name, [*head, *(f"{name}{_text(labels)} {value}" for labels, value in sorted(rows.items()))] if rows else []


def _histogram(name: str, rows: Mapping[Labels, Histogram]) -> tuple[str, Iterable[str]]:
    lines = [f"# HELP {name} {HELP[name]}", f"# TYPE {name} histogram"] if rows else []
    for labels, row in sorted(rows.items(), key=lambda pair: pair[0]):
        below = 0
        for bound, count in zip((*row.bounds, float("inf")), row.counts, strict=True):
            below += count
            edge = "+Inf" if bound == float("inf") else f"{bound:g}"
            lines.append(f"{name}_bucket{_text(labels, (('le', edge),))} {below}")
        lines += [f"{name}_sum{_text(labels)} {row.total!r}", f"{name}_count{_text(labels)} {below}"]
    return name, lines


def _text(labels: Labels, more: Labels = ()) -> str:
    rows = [f'{name}="{value}"' for name, value in (*sorted(labels), *more)]
    return "{" + ",".join(rows) + "}" if rows else ""
