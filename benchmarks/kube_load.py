"""A control plane under the loads of its budgets, beside a real one where there is one; prints the table of docs/performance.md.

    python benchmarks/kube_load.py [--deployments 500] [--pods 5000] [--watchers 60] [--seconds 1.0] [--real DIR] [--write]

Ours is `itbench kube` in a child process. The real one is `$ITBENCH_REAL/cluster.py up` in a temporary folder, or a cluster that
already runs (`--real DIR`). Both are asked by the same client over TLS; its own cost is in every number. `--write` puts the table
into docs/performance.md, between its marks.
"""

import argparse
import asyncio
import base64
import os
import platform
import re
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import yaml

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
BEGIN, END = "<!-- kube_load: begin -->", "<!-- kube_load: end -->"
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/load/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
WORKERS = 8
Rows = dict[str, str]


class Site:
    """One API server, by its kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        found = yaml.safe_load(kubeconfig.read_text())
        cluster, user = found["clusters"][0]["cluster"], found["users"][0]["user"]
        self.url: str = cluster["server"]
        self.context = ssl.create_default_context()
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        self.headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        if not self.headers:
            with tempfile.TemporaryDirectory() as folder:
                names = [_file(user, key, Path(folder)) for key in ("client-certificate", "client-key")]
                self.context.load_cert_chain(*names)

    async def ask(
        self, session: aiohttp.ClientSession, method: str, path: str, body: Any = None, **headers: str
    ) -> bytes:
        """The answer's body; raises RuntimeError on a refusal."""
        sent = {"Content-Type": "application/json"} | {key.replace("_", "-"): value for key, value in headers.items()}
        data = None if body is None else orjson.dumps(body)
        async with session.request(method, self.url + path, data=data, headers=sent) as reply:
            raw = await reply.read()
            if reply.status >= 400 and reply.status != 409:
                raise RuntimeError(f"{method} {path}: {reply.status} {raw[:300]!r}")
            return raw

    def session(self) -> aiohttp.ClientSession:
        """A client with as many connections as it needs."""
        connector = aiohttp.TCPConnector(ssl=self.context, limit=0)
        return aiohttp.ClientSession(connector=connector, headers=self.headers)


def _file(user: dict[str, str], key: str, folder: Path) -> str:
    if key in user:
        return user[key]
    path = folder / key
    path.write_bytes(base64.b64decode(user[f"{key}-data"]))
    return str(path)


async def _rate(work: Callable[[], Awaitable[Any]], seconds: float) -> str:
    """Requests per second of eight workers, and the median of one request."""
    took: list[float] = []
    end = time.perf_counter() + seconds

    async def worker() -> None:
        while time.perf_counter() < end:
            start = time.perf_counter()
            await work()
            took.append(time.perf_counter() - start)

    start = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(WORKERS)))
    return f"{len(took) / (time.perf_counter() - start):,.0f}/s ({1e3 * statistics.median(took):.1f} ms)"


async def _many(count: int, make: Callable[[int], Awaitable[Any]]) -> float:
    """Seconds for `count` calls by eight workers."""
    numbers, start = iter(range(count)), time.perf_counter()

    async def worker() -> None:
        for number in numbers:
            await make(number)

    await asyncio.gather(*(worker() for _ in range(WORKERS)))
    return time.perf_counter() - start


def _pod(name: str) -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "nginx:1",
        "ports": [{"containerPort": 80}],
        "env": [{"name": "A", "value": "b"}],
    }
    spec = {"containers": [container], "nodeSelector": {"none": "such"}, "automountServiceAccountToken": False}
    return {"metadata": {"name": name, "labels": {"app": "load"}}, "spec": spec}


def _deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


async def small(site: Site, options: argparse.Namespace) -> Rows:
    """Single objects."""
    serial = iter(range(10**9))
    async with site.session() as session:
        await site.ask(session, "POST", MAPS, {"metadata": {"name": "bench"}, "data": {"a": "b"}})

        def patch() -> Awaitable[bytes]:
            body, kind = {"data": {"n": str(next(serial))}}, "application/strategic-merge-patch+json"
            return site.ask(session, "PATCH", f"{MAPS}/bench", body, Content_Type=kind)

        cases: dict[str, Callable[[], Awaitable[bytes]]] = {
            "GET of a ConfigMap": lambda: site.ask(session, "GET", f"{MAPS}/bench"),
            "LIST of ConfigMaps": lambda: site.ask(session, "GET", MAPS),
            "Table of ConfigMaps": lambda: site.ask(session, "GET", MAPS, Accept=TABLE),
            "PATCH of a ConfigMap": patch,
        }
        return {name: await _rate(work, options.seconds) for name, work in cases.items()}


async def fan_out(site: Site, options: argparse.Namespace) -> Rows:
    """One write until the last of many watches has it; the median of ten."""
    seen: asyncio.Queue[None] = asyncio.Queue()
    async with site.session() as session:
        since = orjson.loads(await site.ask(session, "GET", MAPS))["metadata"]["resourceVersion"]

        async def follow() -> None:
            async with session.get(f"{site.url}{MAPS}?watch=true&resourceVersion={since}") as reply:
                async for _ in reply.content:
                    seen.put_nowait(None)

        tasks = [asyncio.create_task(follow()) for _ in range(options.watchers)]
        await asyncio.sleep(0.5)
        took = []
        for number in range(10):
            start = time.perf_counter()
            await site.ask(session, "POST", MAPS, {"metadata": {"name": f"fan-{time.time_ns()}-{number}"}})
            for _ in range(options.watchers):
                await asyncio.wait_for(seen.get(), 60)
            took.append(time.perf_counter() - start)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return {f"a write until {options.watchers} watches have it": f"{1e3 * statistics.median(took):.0f} ms"}


async def many_pods(site: Site, options: argparse.Namespace) -> Rows:
    """Pending pods made and listed."""
    async with site.session() as session:
        await site.ask(session, "POST", "/api/v1/namespaces", {"metadata": {"name": "load"}})
        await asyncio.sleep(1.0)  # its service account comes from a controller
        took = await _many(options.pods, lambda n: site.ask(session, "POST", PODS, _pod(f"pod-{n:05}")))
        rows = {f"{options.pods:,} pods made": f"{took:.1f} s"}
        forms = {"listed": "application/json", "listed as a table": TABLE}
        for name, accept in forms.items():
            runs = []
            for _ in range(3):
                start = time.perf_counter()
                raw = await site.ask(session, "GET", PODS, Accept=accept)
                runs.append(time.perf_counter() - start)
            rows[f"{options.pods:,} pods {name}"] = f"{statistics.median(runs):.2f} s, {len(raw) / 1e6:.1f} MB"
        return rows


async def deployments(site: Site, options: argparse.Namespace, *, kubelets: bool) -> Rows:
    """Deployments of one pod each until their pods run; without kubelets, until there is a pod for each."""
    base = "/apis/apps/v1/namespaces/default/deployments"
    async with site.session() as session:
        start = time.perf_counter()
        await _many(options.deployments, lambda n: site.ask(session, "POST", base, _deployment(f"d-{n:04}")))
        running = "?fieldSelector=status.phase%3DRunning" if kubelets else ""
        while True:
            raw = await site.ask(session, "GET", f"/api/v1/namespaces/default/pods{running}")
            if len(orjson.loads(raw)["items"]) >= options.deployments:
                break
            if time.perf_counter() - start > 300:
                return {f"{options.deployments} Deployments": "more than 300 s"}
            await asyncio.sleep(0.25)
    what = "Running" if kubelets else "a pod each (no kubelets)"
    return {f"{options.deployments} Deployments": f"{time.perf_counter() - start:.1f} s to {what}"}


def _memory(folder: Path, pids: list[int]) -> str:
    """Resident memory of the processes whose command line names a folder, or that are named."""
    total = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            mine = int(entry.name) in pids or str(folder).encode() in (entry / "cmdline").read_bytes()
            match = re.search(r"VmRSS:\s+(\d+)", (entry / "status").read_text()) if mine else None
        except OSError:
            continue
        if match and int(entry.name) != os.getpid():
            total += int(match[1])
    return f"{total / 1024:,.0f} MB"


def measure(kubeconfig: Path, folder: Path, pids: list[int], options: argparse.Namespace, *, kubelets: bool) -> Rows:
    """All rows of one server that runs."""
    site = Site(kubeconfig)

    async def everything() -> Rows:
        rows = {"memory when empty": _memory(folder, pids)}
        rows |= await small(site, options)
        rows |= await fan_out(site, options)
        rows |= await deployments(site, options, kubelets=kubelets)
        rows |= await many_pods(site, options)
        return rows | {"memory at the end": _memory(folder, pids)}

    return asyncio.run(everything())


def ours(options: argparse.Namespace) -> Rows:
    """`itbench kube` in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder, start = Path(name) / "kube", time.perf_counter()
        argv = [str(Path(sys.executable).parent / "itbench"), "kube", "--dir", str(folder), "--nodes", "5"]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            process.stdout.readline()
            took = time.perf_counter() - start
            rows = measure(folder / "kubeconfig", folder, [process.pid], options, kubelets=True)
        finally:
            process.terminate()
            process.wait(20)
    return {"start": f"{took:.1f} s"} | rows


def real(options: argparse.Namespace) -> Rows | None:
    """The real control plane, if there is one; it has no kubelets."""
    if options.real:
        folder = Path(options.real)
        return measure(folder / "kubeconfig", folder, [], options, kubelets=False)
    tool = Path(os.environ.get("ITBENCH_REAL", "/nowhere")) / "cluster.py"
    if not tool.exists():
        return None
    with tempfile.TemporaryDirectory() as name:
        folder, start = Path(name) / "real", time.perf_counter()
        try:
            subprocess.run([str(tool), "up", str(folder)], check=True, stdout=subprocess.DEVNULL)
            took = time.perf_counter() - start
            rows = measure(folder / "kubeconfig", folder, [], options, kubelets=False)
        finally:
            subprocess.run([str(tool), "down", str(folder)], check=False, stdout=subprocess.DEVNULL)
    return {"start": f"{took:.1f} s"} | rows


def table(mine: Rows, theirs: Rows | None) -> str:
    """Markdown."""
    other = theirs or {}
    head = ["| what | itbench | real control plane |", "|---|---|---|"]
    return "\n".join([*head, *(f"| {name} | {value} | {other.get(name, '-')} |" for name, value in mine.items())])


def write(text: str) -> None:
    """Put the table between the marks of the page, which is made when there is none."""
    note = f"{os.cpu_count()} processors, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f} at the end"
    block = f"{BEGIN}\n\n{text}\n\n{note}\n\n{END}"
    if not PAGE.exists():
        PAGE.write_text(
            f"# Performance\n\n## The control plane\n\n`make bench ARGS=kube_load` measures this.\n\n{block}\n"
        )
        return
    page = PAGE.read_text()
    marked = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    PAGE.write_text(
        marked.sub(lambda _: block, page) if marked.search(page) else f"{page}\n## The control plane\n\n{block}\n"
    )


def main() -> None:
    """Measure, print, and write when asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deployments", type=int, default=500)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--watchers", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--real", default="", help="folder of a real cluster that runs already")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    text = table(ours(options), real(options))
    print(text)
    if options.write:
        write(text)


if __name__ == "__main__":
    main()
