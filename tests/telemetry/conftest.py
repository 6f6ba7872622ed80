"""Sample data for PromQL, and the real Prometheus to compare with."""

import os
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from itbench.core.clock import unix
from itbench.telemetry.metrics import NAN, MetricStore, is_absent

ROUTES = ("/cart", "/pay")
BOUNDS = ("0.1", "0.25", "0.5", "1", "2.5", "+Inf")


def _counters(store: MetricStore, rng: np.random.Generator) -> None:
    """Two targets with their own scrape offsets; counters that are reset, start late, or end."""
    for number, instance in enumerate(("10.0.0.1:8080", "10.0.0.2:8080")):
        labels = [
            {"__name__": "http_requests_total", "job": "shop", "instance": instance, "method": method, "code": code}
            for method in ("GET", "POST")
            for code in ("200", "404", "500")
        ]
        block = store.block(f"shop/{instance}", labels)
        total = np.zeros(len(labels))
        for row in range(480):
            if row in (100, 101, 303) and number == 0:
                total[:] = 0
            total += rng.integers(0, 30, len(labels))
            values = total.copy()
            if row < 50:
                values[1] = np.nan
            if row > 400 and number == 1:
                values[4:] = np.nan
            if 200 < row < 230:
                values[2] = np.nan
            if not (number == 1 and 250 < row < 256):
                block.append(15.0 * row + 3.217 * (number + 1), values, mark=row % 2 == 0 or row > 205)


def _gauges(store: MetricStore, rng: np.random.Generator) -> None:
    labels: list[dict[str, str]] = [
        {"__name__": "memory_bytes", "pod": f"cart-{i}", "node": f"node-{i % 2}", "namespace": "shop"} for i in range(4)
    ]
    labels += [{"__name__": "temperature", "room": room} for room in ("a", "b", "c")]
    labels += [{"__name__": "odd", "kind": kind} for kind in ("nan", "inf", "mixed", "constant", "tiny", "huge")]
    labels += [
        {"__name__": "text", "path": 'C:\\x "q"', "city": "Köln", "line": "a\nb"},
        {"__name__": "text", "path": "plain"},
    ]
    block = store.block("gauges", labels)
    for row in range(240):
        memory = 1e8 + rng.integers(0, 1000, 4) * 4096.0
        memory[3] = np.nan if row % 7 == 3 else memory[3]
        warm = np.array([-5.5 + row * 0.1, np.sin(row / 10.0) * 20, 21.0 + (row % 5)])
        odd = np.array(
            [NAN, np.inf if row % 2 else -np.inf, NAN if row % 3 == 0 else row, 42.0, 1e-9 * row, 1e300 * (row % 3)]
        )
        block.append(30.0 * row + 1.5, np.concatenate([memory, warm, odd, [1.0, float(row % 4)]]), mark=row % 14 == 3)
    block.end(30.0 * 240)


def _histograms(store: MetricStore, rng: np.random.Generator) -> None:
    labels = [{"__name__": "latency_seconds_bucket", "route": route, "le": le} for route in ROUTES for le in BOUNDS]
    labels += [{"__name__": "latency_seconds_bucket", "route": "/cut", "le": le} for le in BOUNDS[:-1]]
    labels += [{"__name__": f"latency_seconds_{part}", "route": route} for route in ROUTES for part in ("sum", "count")]
    block = store.block("latency", labels)
    counts = np.zeros((3, len(BOUNDS)))
    for row in range(480):
        counts += np.cumsum(rng.integers(0, 9, (3, len(BOUNDS))), axis=1) * (0 if 300 < row < 340 else 1)
        sums = [counts[0, -1] * 0.4, counts[0, -1], counts[1, -1] * 0.3, counts[1, -1]]
        block.append(15.0 * row, np.concatenate([counts[0], counts[1], counts[2, :-1], sums]))


def _info(store: MetricStore) -> None:
    labels = [
        {"__name__": "kube_pod_info", "pod": f"cart-{i}", "node": f"node-{i % 2}", "uid": f"u{i}"} for i in range(3)
    ]
    labels += [{"__name__": "node_zone", "node": f"node-{i}", "zone": f"eu-{i}"} for i in range(2)]
    labels += [{"__name__": "up", "job": job, "instance": job} for job in ("shop", "db", "cache")]
    labels += [{"__name__": "build", "version": v} for v in ("1", "2")]
    block = store.block("info", labels)
    for row in range(240):
        ups = [1.0, 0.0 if 80 < row < 120 else 1.0, float(row % 2)]
        builds = [1.0 if row < 100 else np.nan, np.nan if row < 100 else 2.0]
        block.append(30.0 * row, np.array([1.0] * 5 + ups + builds))


def build_store() -> MetricStore:
    """Two hours of samples of every kind that PromQL treats differently."""
    store = MetricStore()
    rng = np.random.default_rng(7)
    _counters(store, rng)
    _gauges(store, rng)
    _histograms(store, rng)
    _info(store)
    return store


@pytest.fixture(scope="session")
def sample_store() -> MetricStore:
    return build_store()


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _field(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _snappy(data: bytes) -> bytes:
    """A valid snappy block that compresses nothing."""
    pieces = [data[place : place + 65536] for place in range(0, len(data), 65536)]
    return _varint(len(data)) + b"".join(bytes([61 << 2]) + struct.pack("<H", len(p) - 1) + p for p in pieces)


def write_requests(store: MetricStore) -> list[bytes]:
    """All samples as one remote-write body, oldest first within each series."""
    series = []
    for block in store.blocks():
        values = np.ascontiguousarray(block.values)
        there = ~is_absent(values)
        stamps = [_varint(round(unix(float(t)) * 1000)) for t in block.times]
        for column, labels in enumerate(block.labels):
            pairs = b"".join(_field(1, _field(1, n.encode()) + _field(2, v.encode())) for n, v in labels)
            rows = np.flatnonzero(there[:, column])
            samples = [_field(2, b"\x09" + values[row, column].tobytes() + b"\x10" + stamps[row]) for row in rows]
            series.append(_field(1, pairs + b"".join(samples)))
    return [b"".join(series)]


class Prometheus:
    """A real Prometheus on the loopback."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str, **params: str) -> dict[str, Any]:
        """An API call by POST; error answers are returned like others."""
        body = urllib.parse.urlencode(params).encode()
        try:
            with urllib.request.urlopen(f"{self.url}{path}", body or None, timeout=30) as answer:
                return dict(orjson.loads(answer.read().decode(errors="replace")))
        except urllib.error.HTTPError as error:
            with error:
                return dict(orjson.loads(error.read().decode(errors="replace")))

    def fetch(self, path: str, params: dict[str, str]) -> dict[str, Any]:
        """An API call by GET; error answers are returned like others."""
        try:
            with urllib.request.urlopen(f"{self.url}{path}?{urllib.parse.urlencode(params)}", timeout=30) as answer:
                return dict(orjson.loads(answer.read().decode(errors="replace")))
        except urllib.error.HTTPError as error:
            with error:
                return dict(orjson.loads(error.read().decode(errors="replace")))

    def write(self, body: bytes) -> None:
        """Remote write."""
        headers = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}
        request = urllib.request.Request(f"{self.url}/api/v1/write", _snappy(body), headers)
        with urllib.request.urlopen(request, timeout=30):
            pass


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _ready(url: str, process: "subprocess.Popen[bytes]") -> bool:
    for _ in range(300):
        if process.poll() is not None:
            return False
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=5):
                return True
        except OSError:
            time.sleep(0.05)
    return False


def launch(home: Path, config: str) -> "tuple[str, subprocess.Popen[bytes]]":
    """Start the real Prometheus; its address and its process."""
    folder = os.environ["ITBENCH_REAL"]
    path = subprocess.run(
        [sys.executable, f"{folder}/cluster.py", "program", "prometheus"], check=True, capture_output=True, text=True
    ).stdout.strip()
    (home / "prometheus.yml").write_text(config)
    url = f"http://127.0.0.1:{free_port()}"
    argv = [path, f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/data"]
    argv += ["--web.enable-remote-write-receiver", f"--web.listen-address={url[7:]}"]
    argv += ["--storage.tsdb.retention.time=100y"]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log, cwd=home)
    if not _ready(url, process):
        process.kill()
        process.wait(20)
        raise RuntimeError("Prometheus did not start: " + (home / "log").read_text()[-2000:])
    return url, process


@pytest.fixture(scope="session")
def start_prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Prometheus]]:
    """Starts a real Prometheus with a configuration; skips where there is none."""
    folder = os.environ.get("ITBENCH_REAL")
    if not folder or not (Path(folder) / "cluster.py").exists():
        pytest.skip("ITBENCH_REAL does not name the folder with the real programs")
    running: list[subprocess.Popen[bytes]] = []

    def start(config: str) -> Prometheus:
        url, process = launch(tmp_path_factory.mktemp("prometheus"), config)
        running.append(process)
        return Prometheus(url)

    yield start
    for process in running:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="session")
def real_prometheus(start_prometheus: Callable[[str], Prometheus], sample_store: MetricStore) -> Prometheus:
    """A real Prometheus that holds the samples of `sample_store`."""
    server = start_prometheus("global: {}\n")
    for body in write_requests(sample_store):
        server.write(body)
    return server
