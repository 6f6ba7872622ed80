"""Scripts that want too much of a machine end as on one: they are killed, and meanwhile others get their turn."""

import importlib.util
import tracemalloc
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("shell_box", Path(__file__).with_name("test_shell.py"))
assert SPEC is not None and SPEC.loader is not None
box = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(box)

DOUBLE = "x=0123456789; while :; do {body}; done"


@pytest.mark.parametrize(
    "script",
    [
        DOUBLE.format(body="x=$x$x"),
        DOUBLE.format(body='x="$x$x"'),
        DOUBLE.format(body="x=$(echo $x$x)"),
        DOUBLE.format(
            body="echo $x$x > /tmp/a; cat /tmp/a /tmp/a > /tmp/b; cat /tmp/b /tmp/b > /tmp/a; x=$(cat /tmp/a)"
        ),
        DOUBLE.format(body="x=$(echo $x; echo $x) ; echo $x | cat | cat > /tmp/a"),
    ],
)
def test_a_process_that_grows_without_end_is_killed(script: str) -> None:
    """137, as from the kernel, and the memory it took stays small."""
    tracemalloc.start()
    code, _, _, _ = box.run(script)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert code == 137
    assert peak < 64 << 20


def test_long_work_lets_others_have_their_turn() -> None:
    """Ten thousand commands that never sleep still use some time."""
    script = "for a in 1 2 3 4 5 6 7 8 9 0; do for b in 1 2 3 4 5 6 7 8 9 0; do for c in 1 2 3 4 5 6 7 8 9 0; do "
    script += "for d in 1 2 3 4 5 6 7 8 9 0; do :; done; done; done; done"
    code, _, _, slept = box.run(script)
    assert code == 0
    assert slept > 0


@pytest.mark.parametrize(
    "script",
    ["printf %1000000000s x", "echo " + "$(" * 3000, "echo $((" + "(" * 3000, "((" * 3000, "{ " * 3000, "if " * 3000],
)
def test_nonsense_of_any_depth_is_an_error_of_the_script(script: str) -> None:
    """No exception leaves the shell, and nothing large is printed."""
    code, out, _, _ = box.run(script)
    assert code in (0, 1, 2, 127, 137)
    assert len(out) < 1 << 20


def test_sums_stay_within_64_bits() -> None:
    """Squaring wraps around as in C instead of growing."""
    code, out, _, _ = box.run("x=3; for i in 1 2 3 4 5 6 7 8 9; do x=$((x*x)); done; echo $x")
    assert code == 0
    assert -(1 << 63) <= int(out) < 1 << 63
