"""What a person waits for: a trial cold and from a checkpoint, trials of a sweep, the first answer of a control plane, imports,
the world's speed and memory.

    python benchmarks/trial.py [--runs 3] [--scenario sre-12] [--trials 12]

Whole commands run in processes of their own with a cache folder of their own. Beside wall seconds stand processor seconds
(children included), which a busy machine disturbs less. Budgets: 6 s cold, 1.5 s from a checkpoint, 2,000 trials per hour and
core, 0.4 s to the first answer, 0.15 s to import, 1000 times real time at 25 services, 300 MB after an hour.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ANSWER = """
from itbench.core.ids import Ids
from itbench.kube.plane import ControlPlane
plane = ControlPlane(ids=Ids(1))
assert plane.client("bench").list("namespaces")
"""
WORLD = """
import gc, re, sys, time
from pathlib import Path
from itbench.core import codec
from itbench.run import forged
from itbench.world.estate import World
for name in forged.COMMON:  # as in a worker
    forged._import(name)
gc.freeze()
gc.set_threshold(forged.NEW_OBJECTS)
saved = codec.loads(Path(sys.argv[1]).read_bytes())
begin = time.process_time()
world = World.load(saved["driver"]["environment"]["world"])
loaded = time.process_time()
world.advance(world.now + 15)
ready = time.process_time()
world.advance(world.now + 900)
speed = 900 / (time.process_time() - ready)
world.advance(world.now + 2685)
memory_kb = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]
print(loaded - begin, speed, int(memory_kb) / 1000)
"""
Seconds = tuple[float, float]


def _timed(argv: list[str], environment: dict[str, str]) -> Seconds:
    """(wall, processor) seconds of a command that must succeed."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _show(what: str, found: list[Seconds]) -> None:
    wall, busy = (statistics.median(column) for column in zip(*found, strict=True))
    print(f"{what:<44} {wall:7.2f} s wall {busy:7.2f} s processor")


def _run(home: Path, scenario: str, environment: dict[str, str], *options: str) -> Seconds:
    out = Path(tempfile.mkdtemp(dir=home)) / "run"
    return _timed([sys.executable, "-m", "itbench.cli.main", "run", scenario, "--out", str(out), *options], environment)


def _measure_trials(home: Path, given: argparse.Namespace, environment: dict[str, str]) -> None:
    checkpoints, scenario = home / "cache" / "itbench" / "checkpoints", given.scenario
    cold, warm, sweep = [], [], []
    for _ in range(given.runs):
        shutil.rmtree(checkpoints, ignore_errors=True)
        cold.append(_run(home, scenario, environment))
        warm.append(_run(home, scenario, environment))
        wall, busy = _run(home, scenario, environment, "--agent", "oracle", "--trials", str(given.trials), "-j", "2")
        sweep.append((wall / given.trials, busy / given.trials))
    _show(f"{scenario}, whole command, cold", cold)
    _show(f"{scenario}, whole command, from a checkpoint", warm)
    _show(f"the same in a sweep of {given.trials}, two at once, each", sweep)
    rate = 3600 / statistics.median(busy for _, busy in sweep)
    print(f"{'trials per hour and core':<44} {rate:7.0f} (processor)")
    _measure_world(next(checkpoints.glob(f"{scenario}-*")), given.runs, environment)


def _measure_world(saved: Path, runs: int, environment: dict[str, str]) -> None:
    found = []
    for _ in range(runs):
        made = subprocess.run(
            [sys.executable, "-c", WORLD, str(saved)], check=True, env=environment, capture_output=True, text=True
        )
        found.append(tuple(map(float, made.stdout.split())))
    load_s, speed, memory_mb = (statistics.median(column) for column in zip(*found, strict=True))
    print(f"{'restore of its world':<44} {1000 * load_s:7.0f} ms processor")
    print(f"{'its world':<44} {speed:7.0f} times real time (processor)")
    print(f"{'memory of its process after an hour':<44} {memory_mb:7.0f} MB at most")


def main() -> None:
    """Measure and print medians."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scenario", default="sre-12")
    parser.add_argument("--trials", type=int, default=12, help="of the sweep")
    given = parser.parse_args(sys.argv[1:] if Path(sys.argv[0]).name == "trial.py" else [])
    with tempfile.TemporaryDirectory(prefix="itbench-bench-") as folder:
        environment = {**os.environ, "XDG_CACHE_HOME": str(Path(folder) / "cache")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for what, code in (("import itbench", "import itbench"), ("control plane to its first answer", ANSWER)):
            _timed([sys.executable, "-c", code], environment)  # once for bytecode
            _show(what, [_timed([sys.executable, "-c", code], environment) for _ in range(given.runs)])
        _measure_trials(Path(folder), given, environment)


if __name__ == "__main__":
    main()
