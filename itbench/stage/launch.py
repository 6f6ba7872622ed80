"""Starts ansible-playbook so that it dies with the trial. Run as a script by the launcher that `ansible.py` writes."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends; nothing where there is no such call."""
    parent = os.getppid()
    try:
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Run ansible-playbook in this process."""
    die_with_parent()
    sys.argv[0] = "ansible-playbook"
    from ansible.cli.playbook import main as playbook

    playbook()


if __name__ == "__main__":
    main()
