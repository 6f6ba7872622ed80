"""Writes `samples.om`, the hour of synthetic series that the differential suite asks about. Run: python samples.py

Everything is arithmetic on small integers, so that the file is the same wherever it is made.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path

T0 = 1768204800
"""2026-01-12T08:00:00Z; the file covers an hour from here."""

Value = Callable[[int], float | None]
"""Row -> value, None where there is no sample."""


class Draw:
    """A linear congruential generator: the same numbers everywhere."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, bound: int) -> int:
        self._state = (self._state * 1103515245 + 12345) % 2**31
        return (self._state >> 8) % bound


def show(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return f"{value:+}".title() if math.isinf(value) else repr(value).removesuffix(".0")


class Page:
    """Collects lines of one file."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def family(self, name: str, kind: str, text: str) -> None:
        self.lines += [f"# TYPE {name} {kind}", f"# HELP {name} {text}"]

    def series(self, name: str, value: Value, step: float = 30.0, rows: int = 120, shift: float = 0.0) -> None:
        for row in range(rows):
            found = value(row)
            if found is not None:
                moment = f"{T0 + shift + row * step:.3f}".rstrip("0").rstrip(".")
                self.lines.append(f"{name} {show(found)} {moment}")


def growing(seed: int, most: int, resets: tuple[int, ...] = (), scale: float = 1.0) -> Value:
    """A counter; it must be asked for its rows in order."""
    draw, total = Draw(seed), 0

    def value(row: int) -> float:
        nonlocal total
        total = 0 if row in resets else total
        total += draw.below(most)
        return total * scale

    return value


def without(value: Value, *gaps: tuple[int, int]) -> Value:
    """The same without the rows of the gaps (first, last)."""

    def cut(row: int) -> float | None:
        found = value(row)
        return None if any(first <= row <= last for first, last in gaps) else found

    return cut


def counters(page: Page) -> None:
    page.family("http_requests", "counter", "Requests.")
    seed = 1
    for instance in ("a:1", "b:1"):
        for method in ("GET", "POST"):
            for code in ("200", "404", "500"):
                seed += 1
                value = growing(seed, 40 if code == "200" else 6, (33, 34, 80) if instance == "a:1" else ())
                value = without(value, (0, 19)) if code == "404" and method == "POST" else value
                value = without(value, (95, 119)) if code == "500" and instance == "b:1" else value
                labels = f'code="{code}",instance="{instance}",job="api",method="{method}"'
                page.series(f"http_requests_total{{{labels}}}", value, shift=1.25 if instance == "b:1" else 0.0)
    page.family("cpu_seconds", "counter", "Processor time.")
    for core in range(3):
        page.series(f'cpu_seconds_total{{core="{core}"}}', growing(40 + core, 300, (), 0.1), shift=0.007)
    page.family("huge_jobs", "counter", "Large numbers.")
    page.series("huge_jobs_total", lambda row: 9e15 + row * 3.0)
    page.family("bursts", "counter", "Mostly standing still.")
    page.series('bursts_total{q="one"}', lambda row: float(row // 37))
    page.series('bursts_total{q="two"}', without(lambda row: float(row // 20 * 5), (10, 13), (50, 75)))


def gauges(page: Page) -> None:
    page.family("temperature", "gauge", "Degrees.")
    page.series('temperature{room="a"}', lambda row: row * 0.25 - 5.5)
    page.series('temperature{room="b"}', lambda row: float((row * 7) % 23 - 11))
    page.series('temperature{room="c"}', without(lambda row: 21 + row % 5 * 0.5, (40, 55)))
    page.family("memory_bytes", "gauge", "Memory.")
    for pod in range(4):
        value = growing(90 + pod, 5, (60,), 4096.0)
        page.series(
            f'memory_bytes{{namespace="shop",node="n{pod % 2}",pod="cart-{pod}"}}',
            without(value, (7, 8), (30, 31)) if pod == 3 else value,
            shift=2.5,
        )
    page.family("up", "gauge", "Alive.")
    for job in ("api", "db", "cache"):
        page.series(
            f'up{{instance="{job}:1",job="{job}"}}', lambda row, job=job: float(job == "api" or row // 9 % 3 > 0)
        )
    page.family("flap", "gauge", "On and off, with long silences.")
    page.series("flap", without(lambda row: float(row % 2), (20, 45), (70, 90)))
    page.family("same", "gauge", "Ties.")
    for n in range(5):
        page.series(f'same{{group="{n % 2}",n="{n}"}}', lambda row: 7.0, rows=40, step=90.0)


def odd_ones(page: Page) -> None:
    page.family("odd", "gauge", "Numbers that are none, and other extremes.")
    kinds: dict[str, Value] = {
        "nan": lambda row: math.nan,
        "inf": lambda row: math.inf,
        "neginf": lambda row: -math.inf,
        "swings": lambda row: math.inf if row % 2 else -math.inf,
        "mixed": lambda row: math.nan if row % 3 == 0 else float(row),
        "zero": lambda row: 0.0,
        "negzero": lambda row: -0.0,
        "tiny": lambda row: 1e-300 * (row + 1),
        "huge": lambda row: 1.5e308 if row % 2 else 1.2e308,
        "constant": lambda row: 42.0,
        "fine": lambda row: 0.1 + row * 1e-13,
    }
    for kind, value in kinds.items():
        page.series(f'odd{{kind="{kind}"}}', value, step=60.0, rows=60)
    page.family("cancel", "gauge", "Sums that lose everything but the small part.")
    for part, level in enumerate((1e16, 1.0, -1e16, 0.001, 3.5e15, -3.5e15)):
        page.series(f'cancel{{part="{part}"}}', lambda row, level=level: level, step=60.0, rows=60)
    page.series("cancel_series", lambda row: (1e16, 1.0, -1e16, 2.0)[row % 4])
    page.family("stamp", "gauge", "Points in time.")
    moments = (0.0, 951782400.0, 1709164799.0, 4107542399.0, -1.5, -62135596801.0, 1e13, math.nan, 1768204800.75)
    for n, moment in enumerate(moments):
        page.series(f'stamp{{n="{n}"}}', lambda row, moment=moment: moment, step=150.0, rows=24)
    page.family("once", "gauge", "One sample.")
    page.series("once", lambda row: 3.0 if row == 60 else None)
    page.series("twice", lambda row: float(row) if row in (58, 61) else None)
    page.family("ragged", "gauge", "Samples at odd times.")
    for row in range(50):
        page.lines.append(f"ragged {row * row % 17} {T0 + row * 61 + row * row % 29 + row % 7 * 0.137:.3f}")


def histograms(page: Page) -> None:
    page.family("latency_seconds", "histogram", "Latency.")
    bounds = ("0.1", "0.25", "0.5", "1", "2.5", "+Inf")
    for place, route in enumerate(("/cart", "/pay", "/idle")):
        draw, counts = Draw(300 + place), [0] * len(bounds)
        rows: list[list[int]] = []
        for row in range(120):
            if row == 77:
                counts = [0] * len(bounds)
            more = [0 if route == "/idle" else draw.below(9) for _ in bounds]
            counts = [count + sum(more[: number + 1]) for number, count in enumerate(counts)]
            rows.append(counts)
        for number, bound in enumerate(bounds):
            page.series(
                f'latency_seconds_bucket{{le="{bound}",route="{route}"}}',
                lambda row, r=rows, n=number: float(r[row][n]),
            )
        page.series(f'latency_seconds_count{{route="{route}"}}', lambda row, r=rows: float(r[row][-1]))
        page.series(f'latency_seconds_sum{{route="{route}"}}', lambda row, r=rows: r[row][-1] * 0.375)
    special: dict[str, tuple[tuple[str, float], ...]] = {
        "falling": (("1", 9), ("2", 7), ("4", 12), ("+Inf", 11)),
        "nearly": (("1", 10.0), ("2", 9.999999999999), ("4", 12.0), ("+Inf", 12.0)),
        "headless": (("1", 3), ("2", 5)),
        "lone": (("+Inf", 5),),
        "negative": (("-2", 1), ("-1", 3), ("0", 4), ("1", 8), ("+Inf", 9)),
        "doubled": (("1", 2), ("1.0", 3), ("2", 9), ("+Inf", 10)),
        "stray": (("abc", 1), ("1", 2), ("+Inf", 4)),
        "empty": (("1", 0), ("+Inf", 0)),
        "flat": (("1", 0), ("2", 5), ("4", 5), ("+Inf", 5)),
    }
    page.family("special", "histogram", "Histograms with something the matter.")
    for kind, buckets in special.items():
        for bound, count in buckets:
            page.series(
                f'special_bucket{{kind="{kind}",le="{bound}"}}', lambda row, c=count: float(c * (1 + row // 12)),
                step=60.0, rows=60,
            )  # fmt: skip
    page.series('other_bucket{kind="flat",le="+Inf"}', lambda row: 4.0, step=60.0, rows=60)
    page.series('other_bucket{kind="flat",le="1"}', lambda row: 1.0, step=60.0, rows=60)
    page.family("rpc_seconds", "summary", "Summary.")
    for quantile in ("0.5", "0.99"):
        page.series(f'rpc_seconds{{quantile="{quantile}"}}', lambda row, q=quantile: float(q) * (1 + row % 4) / 8)


def informative(page: Page) -> None:
    page.family("build", "info", "Versions.")
    for instance, version in (("a:1", "1.4.0"), ("b:1", "1.4.1")):
        page.series(f'build_info{{instance="{instance}",job="api",version="{version}"}}', lambda row: 1.0, 60.0, 60)
    page.family("kube_pod_info", "gauge", "Pods.")
    for pod in range(4):
        labels = f'host_ip="10.0.0.{pod % 2}",namespace="shop",node="n{pod % 2}",pod="cart-{pod}",uid="u{pod}"'
        page.series(f"kube_pod_info{{{labels}}}", lambda row: 1.0, 60.0, 60)
    page.family("node_zone", "gauge", "Zones.")
    for node, zone in (("n0", "eu-1"), ("n1", "eu-2"), ("n2", "eu-2")):
        page.series(f'node_zone{{node="{node}",zone="{zone}"}}', lambda row: 1.0, 60.0, 60)
    wide = ",".join(f'l{number:02d}="v{number}"' for number in range(24))
    page.series(f'wide{{{wide},side="x"}}', float, 120.0, 30)
    page.series(f'wide{{{wide},side="y"}}', lambda row: float(row * 2), 120.0, 30)
    page.series("job:requests:rate5m", lambda row: row / 4, 120.0, 30)
    page.series('{"app.requests","http.method"="GET","k8s/pod"="ä-1"}', lambda row: float(row * 3), 120.0, 30)
    page.series('{"app.requests","http.method"="PUT","k8s/pod"="b-2"}', float, 120.0, 30)
    page.series(r'text{city="Köln",line="a\nb",path="C:\\x \"q\""}', lambda row: 1.0, 120.0, 30)
    page.series('text{path="plain"}', lambda row: float(row % 4), 120.0, 30)
    page.series('typed{__type__="gauge",__unit__="bytes",x="1"}', lambda row: row * 2.0, 120.0, 30)
    page.series('typed{__type__="counter",__unit__="bytes",x="2"}', lambda row: row * 3.0, 120.0, 30)


def lines() -> Iterator[str]:
    """The file, line by line."""
    page = Page()
    for part in (counters, gauges, odd_ones, histograms, informative):
        part(page)
    yield from page.lines
    yield "# EOF"


if __name__ == "__main__":
    (Path(__file__).parent / "samples.om").write_text("\n".join(lines()) + "\n")
