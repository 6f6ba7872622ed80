"""Webhooks on real hosts, which were allowed at start (`itbench kube --allow-webhook-host`); and how requests wait for them.

The registry is synchronous. Where hosts are allowed, `Weave.run` runs a verb in a thread that takes turns with the event loop:
while the verb computes, the loop stands; while it waits for a host, the loop serves others. So the store sees one at a time,
and a webhook may ask the API server while it decides. A verb whose object changed meanwhile is run again.
Requests of in-process clients (controllers, staging) wait where they are.
"""

import asyncio
import http.client
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar
from urllib.parse import urlsplit

from itbench.kube.admission.certificates import UNKNOWN
from itbench.kube.admission.services import Moved, Unreached
from itbench.kube.door import Request, Response
from itbench.kube.status import failure

T = TypeVar("T")
_TRIES = 5
_UNKNOWN_CODES = frozenset({2, 18, 19, 20, 21})
_LIMIT = 16 * 1024 * 1024


def _distrust(error: ssl.SSLCertVerificationError) -> str:
    """OpenSSL's complaint in Go's words."""
    if error.verify_code in _UNKNOWN_CODES:
        return UNKNOWN
    if error.verify_code in (9, 10):
        return "x509: certificate has expired or is not yet valid"
    return f"x509: {error.verify_message}"


def _context(authority: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.decode()) if authority else ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def send(url: str, request: Request, authority: bytes, timeout_s: float) -> Response:
    """One HTTPS request, waiting for the answer.

    Raises:
        Unreached: with the words of a Go client.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 443
    try:
        connection = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=_context(authority))
        try:
            connection.request(request.method, request.path, request.body, request.headers)
            answer = connection.getresponse()
            return Response(answer.status, dict(answer.getheaders()), answer.read(_LIMIT))
        finally:
            connection.close()
    except ssl.SSLCertVerificationError as error:
        raise Unreached(f"tls: failed to verify certificate: {_distrust(error)}") from None
    except ssl.SSLError as error:
        raise Unreached(f"tls: {error.reason or error}") from None
    except TimeoutError:
        raise Unreached("context deadline exceeded") from None
    except socket.gaierror:
        raise Unreached(f"dial tcp: lookup {host}: no such host") from None
    except ConnectionRefusedError:
        raise Unreached(f"dial tcp {host}:{port}: connect: connection refused") from None
    except (OSError, http.client.HTTPException):
        raise Unreached("EOF") from None


class Weave:
    """Runs verbs of the registry for an event loop; `Outside` of the registry's services.

    Args:
        hosts: `host` or `host:port` of each host that webhooks may live on.
        translate: (bytes from the registry) -> bytes as the host shall see them.
    """

    def __init__(self, hosts: Iterable[str], translate: Callable[[bytes], bytes]) -> None:
        self._hosts = frozenset(hosts)
        self._translate = translate
        self._turn = threading.local()

    @property
    def waits(self) -> bool:
        """Whether verbs may have to wait for a host."""
        return bool(self._hosts)

    def allows(self, url: str) -> bool:
        """Whether the host was allowed at start."""
        parts = urlsplit(url)
        return parts.hostname in self._hosts or f"{parts.hostname}:{parts.port or 443}" in self._hosts

    def send(self, url: str, request: Request, authority: bytes, timeout_s: float) -> Response:
        """The answer of a host; in a woven verb the event loop goes on meanwhile."""
        sent = Request(request.method, request.path, request.headers, self._translate(request.body))
        turn: _Turn | None = getattr(self._turn, "now", None)
        if turn is None:
            return send(url, sent, authority, timeout_s)
        return turn.wait(lambda: send(url, sent, authority, timeout_s))

    async def run(self, verb: Callable[[], T]) -> T:
        """The outcome of a verb, or its error."""
        if not self._hosts:
            return verb()
        for _ in range(_TRIES):
            try:
                return await self._run(verb)
            except Moved:
                continue
        raise failure(409, "Conflict", "the object changed while webhooks were asked; please try again")

    async def _run(self, verb: Callable[[], T]) -> T:
        turn = _Turn()

        def work() -> None:
            self._turn.now = turn
            try:
                turn.say(("done", verb()))
            except BaseException as error:
                turn.say(("failed", error))

        threading.Thread(target=work, name="itbench-verb", daemon=True).start()
        loop = asyncio.get_running_loop()
        while True:
            kind, value = turn.listen()
            if kind == "done":
                done: T = value
                return done
            if kind == "failed":
                raise value
            turn.reply(await loop.run_in_executor(None, _outcome, value))


class _Turn:
    """Whose turn it is: a verb's thread or the event loop."""

    def __init__(self) -> None:
        self._said: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def say(self, what: tuple[str, Any]) -> None:
        self._said.put(what)

    def listen(self) -> tuple[str, Any]:
        """Blocks the loop while the verb computes."""
        return self._said.get()

    def wait(self, call: Callable[[], T]) -> T:
        """In the thread: let the loop go on until `call` has been made."""
        self.say(("call", call))
        value, error = self._answers.get()
        if error is not None:
            raise error
        done: T = value
        return done

    def reply(self, answer: tuple[Any, BaseException | None]) -> None:
        self._answers.put(answer)


def _outcome(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return call(), None
    except Exception as error:
        return None, error
