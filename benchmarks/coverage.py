"""Coverage of the intervals: how often a nominal 95 % interval holds the truth, on suites whose truth is known.

    python -m benchmarks coverage            (or: make bench ARGS=coverage)
    python -m benchmarks.coverage --runs 10000

Generator: family effects g ~ N(0, 1); scenarios z = sqrt(rho) g + sqrt(1 - rho) e; pass chances BetaInv(Phi(z); 0.6, 0.6);
passes of K trials are binomial; the truth is 0.5. The table in `docs/statistics.md` is this program's output.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np

from itbench.core.statistics.bootstrap import cluster_bootstrap
from itbench.core.statistics.clusters import mean
from itbench.core.statistics.headline import clustered_mean, plain_mean
from itbench.core.statistics.proportions import wilson
from itbench.core.statistics.quantiles import beta_quantile

TRUTH = 0.5
GRID = 4000
METHODS = ("pooled Wald", "pooled Wilson", "t over scenarios", "t clustered", "cluster bootstrap")


@dataclass(frozen=True)
class Cell:
    """One design: N scenarios with K trials each in C families, latent correlation rho within a family."""

    scenarios: int
    trials: int
    families: int
    rho: float = 0.3


CELLS = (Cell(40, 1, 8), Cell(40, 3, 8), Cell(40, 5, 8), Cell(40, 5, 20), Cell(100, 3, 20), Cell(40, 3, 8, 0.0))


def chances() -> np.ndarray:
    """Quantiles of Beta(0.6, 0.6) at the centres of `GRID` equal steps."""
    return np.array([beta_quantile((i + 0.5) / GRID, 0.6, 0.6) for i in range(GRID)])


def suites(cell: Cell, runs: int, seed: int) -> Iterator[np.ndarray]:
    """Passes of every scenario, one array of shape (N,) per run; scenario i is in family i % C."""
    random, quantiles, phi = np.random.default_rng(seed), chances(), np.vectorize(NormalDist().cdf)
    for _ in range(runs):
        family = random.standard_normal(cell.families)[np.arange(cell.scenarios) % cell.families]
        z = sqrt(cell.rho) * family + sqrt(1 - cell.rho) * random.standard_normal(cell.scenarios)
        p = quantiles[np.minimum((phi(z) * GRID).astype(int), GRID - 1)]
        yield random.binomial(cell.trials, p)


def intervals(cell: Cell, passes: Sequence[int], seed: int, draws: int) -> Iterator[tuple[str, float, float]]:
    """(method, low, high) of one run; `draws` 0 leaves the bootstrap out."""
    values = {i: count / cell.trials for i, count in enumerate(passes)}
    family_of = {i: str(i % cell.families) for i in values}
    total, n = int(sum(passes)), cell.scenarios * cell.trials
    p = total / n
    half = 1.959964 * sqrt(p * (1 - p) / n)
    yield "pooled Wald", p - half, p + half
    for name, found in (
        ("pooled Wilson", wilson(total, n)),
        ("t over scenarios", plain_mean(list(values.values()))),
        ("t clustered", clustered_mean(values, family_of)),
    ):
        yield name, found.low or 0.0, found.high or 0.0
    if draws:
        drawn = cluster_bootstrap(values, family_of, mean, method="percentile", seed=seed, draws=draws)
        yield "cluster bootstrap", drawn.low or 0.0, drawn.high or 0.0


def simulate(cell: Cell, runs: int, *, seed: int = 1, draws: int = 0) -> Mapping[str, tuple[float, float]]:
    """Method -> (coverage of the truth, mean half-width) over many runs."""
    hits, widths = dict.fromkeys(METHODS, 0), dict.fromkeys(METHODS, 0.0)
    for run, passes in enumerate(suites(cell, runs, seed)):
        for name, low, high in intervals(cell, [int(count) for count in passes], run, draws):
            hits[name] += low <= TRUTH <= high
            widths[name] += (high - low) / 2
    return {name: (hits[name] / runs, widths[name] / runs) for name in METHODS if draws or name != METHODS[-1]}


def main() -> None:
    """Print the table of coverage and half-width."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, help="simulated runs per design")
    parser.add_argument("--draws", type=int, default=200, help="draws of the bootstrap (0: leave it out)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    methods = METHODS if arguments.draws else METHODS[:-1]
    print("| N, K, C | " + " | ".join(methods) + " |\n" + "|---" * (len(methods) + 1) + "|")
    for cell in CELLS:
        found = simulate(cell, arguments.runs, seed=arguments.seed, draws=arguments.draws)
        label = f"{cell.scenarios}, {cell.trials}, {cell.families}" + (", rho = 0" if not cell.rho else "")
        cells = (f"{coverage:.1%} / {half:.3f}".replace("%", " %") for coverage, half in found.values())
        print(f"| {label} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
