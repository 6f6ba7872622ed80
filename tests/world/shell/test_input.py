"""Which command lines wait for the end of standard input."""

import pytest

from itbench.world.shell.input import reads_input

READING = [
    "cat",
    "tee /tmp/x",
    "grep x",
    "grep -e x",
    "head -n 3",
    "sed s/a/b/",
    "xargs rm",
    "redis-cli",
    "valkey-cli -h cart -p 6379",
    "redis-cli -x set k",
    "bash -s",
]
SCRIPTS_READING = [
    "cat > /tmp/x",
    "cat >/tmp/x",
    "wc -l",
    "while read x; do echo $x; done",
    "cd /tmp && cat >> f",
    "sh",
]
INDEPENDENT = [
    "cat /etc/hosts",
    "ls -l",
    "grep -n x f",
    "grep -r x",
    "sed -n 5p f",
    "head -n 3 f",
    "redis-cli -h cart get x",
    "sh run.sh",
    "env",
]
SCRIPTS_INDEPENDENT = [
    "echo tty; tty",
    "cat /a | grep b",
    "ls | wc -l",
    "cat < f",
    "env | while read x; do echo $x; done",
    "echo 'cat",
]


@pytest.mark.parametrize(
    ("argv", "reads"),
    [(line.split(), True) for line in READING]
    + [(["sh", "-c", line], True) for line in SCRIPTS_READING]
    + [(line.split(), False) for line in INDEPENDENT]
    + [(["sh", "-c", line], False) for line in SCRIPTS_INDEPENDENT],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_only_commands_that_take_standard_input_wait_for_its_end(argv: list[str], reads: bool) -> None:
    """`exec -it POD -- cat FILE` ends by itself, `exec -i POD -- cat` at the end of input."""
    assert reads_input(argv) is reads
