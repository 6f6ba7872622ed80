"""Subresources that reach into the world: logs, exec, attach, port-forward, proxies; called by `server`."""

import asyncio
from dataclasses import replace
from math import inf
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from itbench.core.clock import shift_text
from itbench.kube.api import answers, exec, forward
from itbench.kube.api.door import Call, Patience
from itbench.kube.api.times import stamp
from itbench.kube.client import ApiError, Obj
from itbench.kube.door import LogQuery, NodeDoor, Request
from itbench.kube.kinds.check import Check
from itbench.kube.status import bad_request, failure, invalid

_HOP = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "upgrade", "authorization", "host", "content-length"}
)
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_LISTS = ("containers", "initContainers", "ephemeralContainers")


def nodes_of(call: Call) -> NodeDoor:
    """The node door; 503 where no world is behind the server."""
    if call.door.nodes is None:
        raise failure(503, "ServiceUnavailable", "no nodes are connected to this server")
    return call.door.nodes


def _pod(call: Call) -> Obj:
    registry, target = call.door.registry, call.target
    return registry.get(registry.table.named("pods"), target.name, target.namespace).object


def _container(call: Call, pod: Obj) -> str:
    """The container asked for, or the only one; the texts of the real server otherwise."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    wanted = call.query.get("container", "")
    known = [c["name"] for key in _LISTS for c in spec.get(key, ())]
    if wanted:
        if wanted not in known:
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    names = [c["name"] for c in spec["containers"]]
    if len(names) == 1:
        return str(names[0])
    chosen = pod["metadata"].get("annotations", {}).get("kubectl.kubernetes.io/default-container")
    if chosen in names and call.target.subresource != "log":
        return str(chosen)
    text = f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]"
    inits = [c["name"] for c in spec.get("initContainers", ())]
    raise bad_request(text + (f" or one of the init containers: [{' '.join(inits)}]" if inits else ""))


# -- logs ------------------------------------------------------------------------------------------------------------------


def _number(call: Call, key: str) -> int | None:
    text = call.query.get(key, "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _check_log_options(call: Call) -> None:
    check = Check()
    check.non_negative("tailLines", _number(call, "tailLines"))
    for key, least in (("limitBytes", 1), ("sinceSeconds", 1)):
        if (value := _number(call, key)) is not None and value < least:
            check.invalid(key, value, "must be greater than 0")
    if check:
        raise invalid("PodLogOptions", "", call.target.name, check.causes)


def _log_query(call: Call, container: str) -> LogQuery:
    target, door = call.target, call.door
    since: float | None = None
    if (seconds := _number(call, "sinceSeconds")) is not None:
        since = door.pacer.now() - seconds
    elif call.query.get("sinceTime"):
        try:
            since = door.clock.world(call.query["sinceTime"])
        except ValueError:
            raise bad_request(f'parsing time "{call.query["sinceTime"]}": not RFC 3339') from None
    tail = _number(call, "tailLines")
    return LogQuery(target.namespace, target.name, container, call.flag("previous"), since, None, tail)


def _format(call: Call, lines: list[tuple[float, str]]) -> bytes:
    ahead_s = call.door.clock.shift()
    shown = [(at, shift_text(text, ahead_s)) for at, text in lines]
    if call.flag("timestamps"):
        return "".join(f"{stamp(call.door.pacer, at)} {text}\n" for at, text in shown).encode()
    return "".join(text + "\n" for _, text in shown).encode()


async def logs(call: Call) -> web.StreamResponse:
    """GET of `pods/NAME/log`."""
    _check_log_options(call)
    nodes, pod = nodes_of(call), _pod(call)
    query = _log_query(call, _container(call, pod))
    if not pod["spec"].get("nodeName"):
        return web.Response(status=204)
    lines = nodes.logs(query)
    limit = _number(call, "limitBytes")
    body = _format(call, lines)
    if limit is not None:
        body = body[:limit]
    if not call.flag("follow") or query.previous:
        return web.Response(body=body, content_type="text/plain")
    return await _follow(call, nodes, query, lines, body)


async def _follow(
    call: Call, nodes: NodeDoor, query: LogQuery, lines: list[tuple[float, str]], body: bytes
) -> web.StreamResponse:
    """Stream what was there, then every new line until the container ends or the client leaves."""
    response = web.StreamResponse(headers=answers.headers())
    response.content_type = "text/plain"
    response.enable_chunked_encoding()
    await response.prepare(call.request)
    last = lines[-1][0] if lines else (query.since or 0.0)
    told = sum(1 for at, _ in lines if at == last)
    query = replace(query, tail=None)
    if query.tail is None and not lines:
        last, told = call.door.pacer.now(), 0
    patience = Patience(call.door.pacer)
    try:
        if body:
            await response.write(body)
        while True:
            over = call.door.closing.is_set() or _ended(call, query.container)
            fresh, last, told = _fresh(nodes, query, last, told)
            if fresh:
                await response.write(_format(call, fresh))
                patience.told()
            elif over:
                break
            else:
                await call.door.wait(inf, call.door.changed(), patience)
        await response.write_eof()
    except (ConnectionResetError, asyncio.CancelledError):
        pass
    return response


def _fresh(nodes: NodeDoor, query: LogQuery, last: float, told: int) -> tuple[list[tuple[float, str]], float, int]:
    """Lines not sent yet: those later than the last one, and those of its very second beyond the number sent."""
    try:
        found = [row for row in nodes.logs(replace(query, since=last)) if row[0] >= last]
    except ApiError:
        return [], last, told
    same = [row for row in found if row[0] == last]
    fresh = same[told:] + [row for row in found if row[0] > last]
    if not fresh:
        return [], last, told
    end = fresh[-1][0]
    return fresh, end, sum(1 for at, _ in found if at == end)


def _ended(call: Call, container: str) -> bool:
    """Whether a container will write no more: its pod is gone or finished, or it terminated and is not restarted."""
    entry = call.door.store.get("pods", call.target.namespace, call.target.name)
    if entry is None:
        return True
    state = entry.object.get("status", {})
    if state.get("phase") in ("Succeeded", "Failed"):
        return True
    rows = [row for key in _STATUSES for row in state.get(key, ())]
    return any(row["name"] == container and "terminated" in row.get("state", {}) for row in rows)


# -- exec, attach, port-forward --------------------------------------------------------------------------------------------


async def execute(call: Call) -> web.StreamResponse:
    """exec and attach. Attach of a container without terminal streams what it writes."""
    nodes, pod = nodes_of(call), _pod(call)
    container = _container(call, pod)
    target, query = call.target, call.query
    exec.wanted_channels(query)
    if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        phase = pod["status"]["phase"]
        raise bad_request(f"cannot exec into a container in a completed pod; current phase is {phase}")
    if not pod["spec"].get("nodeName"):
        raise bad_request(f"pod {target.name} does not have a host assigned")
    argv = call.request.query.getall("command", []) if target.subresource == "exec" else []
    call.trace.detail = " ".join(argv)
    if target.subresource == "exec" and not argv:
        raise bad_request("you must specify a command")
    session: Any
    shell = _shell_of(pod, container) if target.subresource == "attach" and call.flag("stdin") else []
    if target.subresource == "attach" and not shell:
        session = Attached(nodes, call, container)
    else:
        stdin, tty = call.flag("stdin"), call.flag("tty")
        try:
            session = nodes.exec(target.namespace, target.name, container, shell or argv, stdin=stdin, tty=tty)
        except ApiError as error:
            return await exec.serve_failure(call.request, error)
    return await exec.serve_session(call.request, query, session, call.door.pacer)


def _shell_of(pod: Obj, container: str) -> list[str]:
    """The shell that waits on a container's standard input (`kubectl debug -it`), or nothing."""
    rows = [row for key in _LISTS for row in pod["spec"].get(key) or () if row["name"] == container]
    if not rows or not rows[0].get("stdin"):
        return []
    argv = [*(rows[0].get("command") or ()), *(rows[0].get("args") or ())] or ["sh"]
    return argv if len(argv) == 1 and argv[0].rsplit("/", 1)[-1] in ("sh", "bash", "ash") else []


class Attached:
    """A session on a running container: its log lines from now on; input goes nowhere."""

    def __init__(self, nodes: NodeDoor, call: Call, container: str) -> None:
        self._nodes, self._call = nodes, call
        self._query = LogQuery(call.target.namespace, call.target.name, container)
        self._last, self._told = call.door.pacer.now(), 0
        self.exit_code: int | None = None

    @property
    def due(self) -> float:
        """Looked at every second of world time."""
        return self._call.door.pacer.now() + 1.0

    def write(self, data: bytes) -> None:
        """No program reads it."""

    def close(self) -> None:
        """Nothing to end."""

    def read(self) -> list[tuple[int, bytes]]:
        """New lines as standard output."""
        fresh, self._last, self._told = _fresh(self._nodes, self._query, self._last, self._told)
        if not fresh and _ended(self._call, self._query.container):
            self.exit_code = 0
        return [(1, _format(self._call, fresh))] if fresh else []


async def port_forward(call: Call) -> web.StreamResponse:
    """Port-forward of a running pod."""
    nodes, pod, target = nodes_of(call), _pod(call), call.target
    if pod.get("status", {}).get("phase") != "Running":
        phase = pod.get("status", {}).get("phase", "Pending")
        raise bad_request(f"unable to forward port because pod is not running. Current status={phase}")
    ports = [int(p) for value in call.request.query.getall("ports", []) for p in value.split(",") if p.isdigit()]
    call.trace.detail = ",".join(map(str, ports))

    def connect(port: int) -> Any:
        return nodes.connect(target.namespace, target.name, port)

    return await forward.serve_forward(call.request, ports, connect, call.door.pacer)


# -- proxies ---------------------------------------------------------------------------------------------------------------


def _destination(call: Call) -> tuple[str, int]:
    """(host, port) of `[scheme:]NAME[:port]` of a pod, service or node proxy."""
    target, registry = call.target, call.door.registry
    parts = target.name.split(":")
    if parts[0] in ("http", "https") and len(parts) > 1:
        parts = parts[1:]
    name, port = parts[0], parts[1] if len(parts) > 1 else ""
    obj = registry.get(call.resource, name, target.namespace if call.resource.namespaced else "").object
    if target.plural == "services":
        return f"{name}.{target.namespace}.svc.cluster.local", _service_port(obj, port)
    if target.plural == "pods":
        ports = [p["containerPort"] for c in obj["spec"]["containers"] for p in c.get("ports", ())]
        if not obj.get("status", {}).get("podIP"):
            raise bad_request("address not allowed")
        return obj["status"]["podIP"], int(port) if port.isdigit() else (ports or [80])[0]
    return name, 10250


def _service_port(service: Obj, wanted: str) -> int:
    ports = service["spec"].get("ports") or [{"port": 80}]
    if wanted.isdigit():
        return int(wanted)
    found = [p["port"] for p in ports if not wanted or p.get("name") == wanted]
    if not found:
        name = service["metadata"]["name"]
        raise failure(503, "ServiceUnavailable", f'no service port "{wanted}" found for service "{name}"')
    return int(found[0])


async def proxy(call: Call) -> web.Response:
    """Any method on `proxy`: a request into the world."""
    nodes, (host, port) = nodes_of(call), _destination(call)
    request = call.request
    path = "/" + unquote(call.target.rest) + (f"?{request.query_string}" if request.query_string else "")
    headers = {key: value for key, value in request.headers.items() if key.lower() not in _HOP}
    response, problem = nodes.http(host, port, Request(request.method, path, headers, await request.read()))
    call.trace.detail = f"{host}:{port}{path}"
    if response is None:
        raise failure(503, "ServiceUnavailable", f"error trying to reach service: {_reason(problem, host, port)}")
    kept = {key: value for key, value in response.headers.items() if key.lower() not in _HOP}
    return web.Response(body=response.body, status=response.status, headers=kept)


def _reason(problem: str, host: str, port: int) -> str:
    texts = {
        "refused": f"dial tcp {host}:{port}: connect: connection refused",
        "timeout": f"dial tcp {host}:{port}: i/o timeout",
        "denied": f"dial tcp {host}:{port}: i/o timeout",
        "nxdomain": f"no endpoints available for service {host.split('.')[0]!r}".replace("'", '"'),
    }
    return texts.get(problem, problem)
