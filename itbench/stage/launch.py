"""Starts ansible-playbook so that it dies with the trial, with a warm interpreter beside it (`warm.py`).

Run as a script by the launcher that `ansible.py` writes.
"""

import os
import sys
from importlib import import_module

from itbench.core.processes import die_with_parent


def start_warm(path: str) -> None:
    """Fork the warm interpreter, silent and without a terminal."""
    parent = os.getpid()
    if os.fork() == 0:
        die_with_parent(parent)
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        key = os.environ.get("ITBENCH_WARM_KEY", "").encode()
        import_module("itbench.stage.warm").serve(path, key)


def main() -> None:
    """Run ansible-playbook in this process."""
    die_with_parent(int(os.environ["ITBENCH_TRIAL_PID"]))
    path = os.environ.get("ITBENCH_WARM", "")
    if path:
        start_warm(path)
    sys.argv[0] = "ansible-playbook"
    import_module("ansible.cli.playbook").main()


if __name__ == "__main__":
    main()
