"""How fast the HTTP door is: start, GET, LIST, Table, PATCH, POST; medians of several runs.

    python benchmarks/kube_api.py [--tls] [--seconds 1.0]

The server runs in a child process under uvloop, the clients (8 connections, plain asyncio) in this one; targets of 20,000 GET,
2,700 LIST and 5,000 PATCH per second are for this setting, over plain http. Three numbers per case: requests per second as they
came, which the clients' own cost and other programs on the machine limit; the server's processor time per request, and how many a
second that would be if the server had a processor to itself. Two lines tell what is not ours: `bare` is a constant answer from an
asyncio protocol that reads nothing, on the same sockets; and `in process` are the same verbs without socket and HTTP.
"""

import argparse
import asyncio
import json
import os
import resource
import ssl
import statistics
import subprocess
import sys
import time
from typing import Any

CONNECTIONS = 8
RUNS = 3
MAPS = "/api/v1/namespaces/default/configmaps"


class Bare(asyncio.Protocol):
    """Answers whatever comes with the same 300 bytes: what sockets and event loop cost."""

    ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n" + b"x" * 300

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client."""
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        """A request."""
        self._transport.write(self.ANSWER)


def fill(plane: Any) -> Any:
    """A hundred pods and a ConfigMap; the client that made them."""
    client = plane.client("bench")
    pod = {
        "containers": [
            {"name": "c", "image": "nginx:1", "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "b"}]}
        ]
    }
    for number in range(100):
        meta = {"name": f"pod-{number:03}", "namespace": "default", "labels": {"app": "web"}}
        client.create("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod})
    meta = {"name": "c", "namespace": "default"}
    client.create("configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    return client


def in_process() -> dict[str, float]:
    """Processor microseconds of the same verbs by a client in the same process: objects are shared, no bytes made."""
    from itbench.core.ids import Ids
    from itbench.kube.plane import ControlPlane

    client = fill(ControlPlane(ids=Ids(1)))
    serial = iter(range(10**9))
    verbs: dict[str, Any] = {
        "GET object": lambda: client.get("configmaps", "c", "default"),
        "LIST 100 pods": lambda: client.list("pods", "default"),
        "PATCH ConfigMap": lambda: client.patch(
            "configmaps", "c", "default", {"data": {"n": str(next(serial))}}, kind="strategic"
        ),
    }
    found = {}
    for name, verb in verbs.items():
        runs = []
        for _ in range(7):
            begin = time.process_time()
            for _ in range(200):
                verb()
            runs.append(1e6 * (time.process_time() - begin) / 200)
        found[name] = statistics.median(runs)
    return found


async def serve_here(tls: bool) -> None:
    """The child: a plane with 100 pods behind the door; tells url and token, then its own processor time when asked."""
    from itbench.core.ids import Ids
    from itbench.kube.api import serve
    from itbench.kube.door import StandingPacer
    from itbench.kube.plane import ControlPlane

    plane = ControlPlane(ids=Ids(1))
    server = await serve(plane, StandingPacer(), tls=tls)
    fill(plane)
    loop = asyncio.get_running_loop()
    bare = await loop.create_server(Bare, "127.0.0.1", 0)
    port = bare.sockets[0].getsockname()[1]
    token = server.token("admin", ("system:masters",))
    print(json.dumps({"url": server.url, "token": token, "ca": server.certificate.decode(), "bare": port}), flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "rss_mb": used.ru_maxrss / 1024}), flush=True)
    await server.close()


class Child:
    """The server process."""

    def __init__(self, tls: bool) -> None:
        start = time.perf_counter()
        argv = [sys.executable, __file__, "--serve", *(["--tls"] if tls else [])]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.hello = self._read()
        self.start_s = time.perf_counter() - start

    def _read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def usage(self) -> Any:
        """Processor seconds and peak memory so far."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """End it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)


async def _client(child: Child, make: Any, until: float, context: ssl.SSLContext | None, *, bare: bool = False) -> int:
    host, port = child.hello["url"].split("://")[1].split(":")
    port, context = (child.hello["bare"], None) if bare else (port, context)
    reader, writer = await asyncio.open_connection(host, int(port), ssl=context, limit=2**20)
    done = 0
    while time.perf_counter() < until:
        writer.write(make(done))
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 2"):
            raise RuntimeError(head.decode())
        size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(size)
        done += 1
    writer.close()
    return done


async def measure(
    child: Child, make: Any, seconds: float, context: ssl.SSLContext | None, *, bare: bool = False
) -> tuple[float, float]:
    """(requests per second, server processor microseconds per request)."""
    before, start = child.usage()["cpu"], time.perf_counter()
    counts = await asyncio.gather(
        *(_client(child, make, start + seconds, context, bare=bare) for _ in range(CONNECTIONS))
    )
    took, used = time.perf_counter() - start, child.usage()["cpu"] - before
    return sum(counts) / took, 1e6 * used / sum(counts)


def request(method: str, path: str, token: str, body: bytes = b"", **headers: str) -> bytes:
    """One request's bytes."""
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {token}", f"Content-Length: {len(body)}"]
    lines += [f"{key.replace('_', '-')}: {value}" for key, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def _always(raw: bytes) -> Any:
    return lambda _: raw


def cases(token: str) -> dict[str, Any]:
    """What is measured: name -> maker of the n-th request."""
    fixed = {
        "GET object": request("GET", f"{MAPS}/c", token),
        "LIST empty": request("GET", "/api/v1/namespaces/default/secrets", token),
        "LIST 100 pods": request("GET", "/api/v1/namespaces/default/pods", token),
        "TABLE 100 pods": request(
            "GET", "/api/v1/namespaces/default/pods", token, Accept="application/json;as=Table;v=v1;g=meta.k8s.io"
        ),
    }
    found: dict[str, Any] = {name: _always(raw) for name, raw in fixed.items()}
    serial = iter(range(10**9))

    def patch(_: int) -> bytes:
        body = b'{"data":{"n":"%d"}}' % next(serial)
        return request("PATCH", f"{MAPS}/c", token, body, Content_Type="application/strategic-merge-patch+json")

    def post(_: int) -> bytes:
        body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n-%d"},"data":{"a":"b"}}' % next(serial)
        return request("POST", f"{MAPS}?fieldValidation=Strict", token, body, Content_Type="application/json")

    return found | {"PATCH ConfigMap": patch, "POST ConfigMap": post}


def main() -> None:
    """Print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    if options.serve:
        import uvloop

        uvloop.run(serve_here(options.tls))
        return
    child = Child(options.tls)
    context = ssl.create_default_context(cadata=child.hello["ca"]) if options.tls else None
    if context is not None:
        context.check_hostname = False
    print(f"start to first line {child.start_s:.2f} s, {os.cpu_count()} processors")
    try:
        found = cases(child.hello["token"])
        for name, make in {"bare": found["GET object"], **found}.items():
            runs = [
                asyncio.run(measure(child, make, options.seconds, context, bare=name == "bare")) for _ in range(RUNS)
            ]
            rate, cost = (statistics.median(column) for column in zip(*runs, strict=True))
            print(
                f"{name:16} {rate:9,.0f} /s {cost:9.0f} us of server time = {1e6 / cost:9,.0f} /s of a free processor"
            )
        for name, cost in in_process().items():
            print(f"in process: {name:16} {cost:9.0f} us")
        print(f"peak memory {child.usage()['rss_mb']:.0f} MB")
    finally:
        child.close()


if __name__ == "__main__":
    main()
