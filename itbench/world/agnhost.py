"""The many-commands test image of Kubernetes (agnhost), as far as a single request or a short batch run shows it.

Which commands open which ports is data in `images`; here is what they answer. `serving` asks `SERVERS`, `process` runs `BATCH`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from urllib.parse import parse_qs, quote, urlsplit

from itbench.core.clock import rfc3339
from itbench.core.ids import digest
from itbench.kube.door import Request, Response
from itbench.world import agnhost_account, agnhost_conversion, agnhost_mounts, agnhost_webhook
from itbench.world.shell.interpreter import Command, Steps
from itbench.world.shell.machine import Machine

TEXT = {"Content-Type": "text/plain; charset=utf-8"}
HEALTHY_S = 10.0
"""How long `liveness` says that it is well."""
_METHODS = ("GET", "POST", "PUT")
_NAMESPACES = ("kube-system", "default", "ns")


@dataclass(frozen=True, slots=True)
class Visit:
    """One request to a server: what it asks, and what the server has.

    Attributes:
        words: arguments of the process.
        store: its memory, gone when it ends.
        age_s: since it started.
        shell: runs a command line in the container: (output, exit code).
    """

    machine: Machine
    words: list[str]
    store: dict[str, str]
    age_s: float
    request: Request
    shell: Callable[[str], tuple[str, int]]

    @property
    def path(self) -> str:
        """Without query."""
        return urlsplit(self.request.path).path

    def query(self, name: str) -> str:
        """A parameter of the query, empty without."""
        return (parse_qs(urlsplit(self.request.path).query).get(name) or [""])[0]

    def option(self, name: str, default: str = "") -> str:
        """An option of the process (`--name value` or `--name=value`)."""
        for index, word in enumerate(self.words):
            key, equals, value = word.lstrip("-").partition("=")
            if word.startswith("-") and key == name:
                return value if equals else (*self.words[index + 1 :], default)[0]
        return default


Server = Callable[[Visit], Response]


def _text(body: str, status: int = 200) -> Response:
    return Response(status, TEXT, body.encode())


def netexec(visit: Visit) -> Response:
    """Host name, echo, client address, shell commands."""
    if visit.path == "/":
        return _text(f"NOW: {rfc3339(visit.machine.calendar())}")
    if visit.path == "/hostname":
        return _text(visit.machine.hostname)
    if visit.path == "/echo":
        return _text(visit.query("msg"))
    if visit.path in ("/healthz", "/readyz"):
        return _text("")
    if visit.path == "/shell":
        output, code = visit.shell(visit.query("shellCommand") or visit.query("cmd"))
        answer = {"output": output} if code == 0 else {"output": output, "error": f"exit status {code}"}
        return Response(200, TEXT, json.dumps(answer, separators=(",", ":")).encode())
    return _text("404 page not found\n", 404)


def liveness(visit: Visit) -> Response:
    """Well for ten seconds, then not."""
    if visit.path != "/healthz":
        return _text("404 page not found\n", 404)
    if visit.age_s > HEALTHY_S:
        return _text(f"error: {visit.age_s:.6f}", 500)
    return _text("ok")


def guestbook(visit: Visit) -> Response:
    """A page in front of a primary that keeps entries and replicas that copy them."""
    key, value = visit.query("key"), visit.query("value")
    if visit.path == "/guestbook":
        return _front(visit, key, value)
    if visit.path == "/get":
        return _answer({"data": visit.store.get(f"entry:{key}") or _from_primary(visit, key)})
    if visit.path == "/set":
        if not key:
            return _text("cannot set with empty key.\n", 400)
        visit.store[f"entry:{key}"] = value
        return _answer({"message": "Updated"})
    return _text("404 page not found\n", 404)


def _front(visit: Visit, key: str, value: str) -> Response:
    command, port = visit.query("cmd").lower(), int(visit.option("backend-port", "6379"))
    if command not in ("get", "set"):
        return _text(f"unsupported cmd: '{command}'\n", 400)
    host = "agnhost-primary" if command == "set" else "agnhost-replica"
    path = f"/{command}?key={quote(key)}&value={quote(value)}"
    answer, verdict = visit.machine.http(host, port, Request("GET", path))
    return answer if answer is not None else _text(f"encountered error: {verdict}\n", 417)


def _from_primary(visit: Visit, key: str) -> str:
    """What a replica finds at the primary (the real one is told; the outcome is the same once both are up)."""
    primary = visit.option("replicaof")
    if not primary:
        return ""
    port = int(visit.option("http-port", "80"))
    answer, _ = visit.machine.http(primary, port, Request("GET", f"/get?key={quote(key)}"))
    if answer is None or answer.status != 200:
        return ""
    return str(json.loads(answer.body).get("data", ""))


def _answer(value: dict[str, str]) -> Response:
    return Response(200, {"Content-Type": "application/json"}, json.dumps(value, separators=(",", ":")).encode())


def webhook(visit: Visit) -> Response:
    """Decides about objects; its certificate is the file that it was started with."""
    certificate = (visit.machine.read(visit.option("tls-cert-file")) or "").encode()
    return agnhost_webhook.answer(visit.path, visit.request.body, certificate)


def conversion(visit: Visit) -> Response:
    """Converts objects of the test suite's definition between its versions."""
    certificate = (visit.machine.read(visit.option("tls-cert-file")) or "").encode()
    return agnhost_conversion.answer(visit.path, visit.request.body, certificate)


SERVERS: dict[str, Server] = {
    "netexec": netexec,
    "guestbook": guestbook,
    "liveness": liveness,
    "webhook": webhook,
    "conversion": conversion,
}
"""By `Listen.serves`."""


# -- commands that open no port ------------------------------------------------------------------------------------------


def generate_logs(call: Command) -> Steps:
    """logs-generator --log-lines-total N --run-duration D: N lines, evenly over the time."""
    total = int(_option(call, "log-lines-total", "0"))
    duration_s, start = _seconds(_option(call, "run-duration", "0s")), call.machine.calendar()
    for number in range(total):
        draw = digest(call.machine.hostname, "log", number)
        stamp = _stamp(start + number * duration_s / total, int.from_bytes(draw[:3], "big") % 1_000_000)
        path = f"/api/v1/namespaces/{_NAMESPACES[draw[3] % 3]}/pods/{draw[4:6].hex()[:3]}"
        call.io.out(f"{stamp}       1 logs_generator.go:76] {number} {_METHODS[draw[6] % 3]} {path} {200 + draw[7]}\n")
        yield duration_s / total
    return 0


def pause(call: Command) -> Steps:
    """pause: says so, and waits."""
    call.io.out("Paused\n")
    yield inf
    return 0


def greeting(word: str, ports: list[int], at: float) -> str:
    """The first line in the log of a command that serves, empty for none."""
    text = {"netexec": "Started HTTP server on port {}", "serve-hostname": "Serving on port {}."}.get(word, "")
    return f"{_stamp(at, 0)}       1 log.go:245] {text.format(*ports)}" if text and ports else ""


def _stamp(at: float, micros: int) -> str:
    """The head of a klog line."""
    moment = rfc3339(at)
    return f"I{moment[5:7]}{moment[8:10]} {moment[11:19]}.{micros:06d}"


def test_entrypoint(call: Command) -> Steps:
    """entrypoint-tester ARGS: prints its arguments."""
    shown = " ".join(call.argv)
    call.io.out(f"[{shown}]\n")
    yield 0.0
    return 0


def unknown(call: Command) -> Steps:
    """A command that there is not."""
    word = call.argv[1] if len(call.argv) > 1 else ""
    call.io.err(f'Error: unknown command "{word}" for "app"\nRun \'app --help\' for usage.\n')
    yield 0.0
    return 1


BATCH: dict[str, Callable[[Command], Steps]] = {
    **agnhost_account.COMMANDS,
    "mounttest": agnhost_mounts.mounttest,
    "pause": pause,
    "logs-generator": generate_logs,
    "entrypoint-tester": test_entrypoint,
}
"""Commands that open no port."""


def _option(call: Command, name: str, default: str) -> str:
    words = iter(call.argv[2:])
    for word in words:
        key, equals, value = word.lstrip("-").partition("=")
        if word.startswith("-") and key == name:
            return value if equals else next(words, default)
    return default


def _seconds(text: str) -> float:
    """A duration as Go reads it, of one unit."""
    units = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
    number = text.rstrip("msh")
    return float(number or 0) * units.get(text[len(number) :], 1.0)
