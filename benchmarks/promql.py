"""Speed of PromQL: milliseconds per range query of 100 series x 240 points. Run: python -m benchmarks promql"""

import statistics
import time

import numpy as np

from itbench.telemetry.metrics import MetricStore
from itbench.telemetry.promql import query_range
from itbench.telemetry.wire import encode_result

BOUNDS = ("0.1", "0.25", "0.5", "1", "+Inf")
QUERIES = (
    "requests_total",
    "rate(requests_total[5m])",
    "sum by (service) (rate(requests_total[5m]))",
    "sum(rate(spread_total[5m]))",
    "avg_over_time(requests_total[5m])",
    "quantile_over_time(0.9, requests_total[5m])",
    "topk(5, rate(requests_total[5m]))",
    "rate(requests_total[5m]) / on(pod) group_left requests_total",
    "histogram_quantile(0.99, sum by (le, service) (rate(latency_bucket[5m])))",
    "max_over_time(rate(requests_total[1m])[10m:1m])",
    'absent(requests_total{pod="none"})',
)


def build(rows: int = 720) -> MetricStore:
    """Three hours at 15 s: 100 series of one target, 100 targets with one series each, and 20 histograms."""
    store = MetricStore()
    rng = np.random.default_rng(1)
    wide = store.block(
        "wide", [{"__name__": "requests_total", "pod": f"p{i}", "service": f"s{i % 10}"} for i in range(100)]
    )
    spread = [store.block(f"spread/{i}", [{"__name__": "spread_total", "pod": f"p{i}"}]) for i in range(100)]
    labels = [{"__name__": "latency_bucket", "service": f"s{i}", "le": le} for i in range(20) for le in BOUNDS]
    buckets = store.block("latency", labels)
    steps = rng.integers(0, 50, (rows, 100)).cumsum(axis=0).astype(float)
    for row in range(rows):
        wide.append(15.0 * row, steps[row])
        for number, block in enumerate(spread):
            block.append(15.0 * row, steps[row, number : number + 1])
        buckets.append(15.0 * row, np.sort(steps[row].reshape(20, 5), axis=1).ravel())
    return store


def main() -> None:
    """Measure and print."""
    begin = time.perf_counter()
    store = build()
    print(f"append: {(time.perf_counter() - begin) / 720 / 102 * 1e6:.1f} us per scrape of a target")
    for query in QUERIES:
        spent, written = [], []
        for _ in range(7):
            begin = time.perf_counter()
            result = query_range(store, query, 3000.0, 3000.0 + 239 * 30.0, 30.0)
            middle = time.perf_counter()
            encode_result(result, 0.0)
            spent.append(middle - begin)
            written.append(time.perf_counter() - middle)
        print(f"{statistics.median(spent) * 1e3:7.2f} ms + {statistics.median(written) * 1e3:6.2f} ms of JSON  {query}")


if __name__ == "__main__":
    main()
