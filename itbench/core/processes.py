"""What the kernel does for a process that asks: end it with its parent, keep its memory from others.

Standard library only and self-contained, because the warden of an agent loads this file by path in a bare interpreter. Numbers
are those of Linux `include/uapi/linux/prctl.h`; where there is no such call, nothing is done.
"""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4


def prctl(option: int, value: int) -> bool:
    """One call of `prctl` with one argument; whether it worked."""
    try:
        return int(ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)) == 0
    except (OSError, AttributeError):
        return False


def die_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    """Ask the kernel to send this process a signal when its parent ends; where it has ended already, the signal is sent now.

    Args:
        parent: process id of whoever started this process, told by that process itself: asked for here, it would be the id of a
            stranger if the parent had just ended. Any id is a parent, 1 too, which is the command's own in a container.
        number: the signal.
    """
    prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def harden() -> bool:
    """Make this process unreadable for others of the same user (memory, environment, descriptors); True when it worked."""
    return prctl(_PR_SET_DUMPABLE, 0)
