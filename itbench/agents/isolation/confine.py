"""Becomes another program after confining itself: how tools start programs on behalf of a foreign agent.

Run by path in a bare interpreter (`python -I -S confine.py PLAN PROGRAM ARGUMENT...`), standard library only. Without it, a
foreign agent could read through kubectl (`--from-file`, `apply -f`) what it cannot read itself.
"""

import importlib.util
import json
import os
import sys


def main() -> None:
    """Read the plan, confine, execute."""
    with open(sys.argv[1]) as file:  # noqa: PTH123 - bare interpreter, fast start
        plan = json.load(file)
    spec = importlib.util.spec_from_file_location("landlock", __file__.rpartition("/")[0] + "/landlock.py")
    assert spec is not None and spec.loader is not None
    landlock = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(landlock)
    landlock.restrict(plan["abi"], [*plan["read"], f"/proc/{os.getpid()}"], plan["write"], plan["ports"])
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
