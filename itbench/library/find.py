"""Finds the library on disk: beside the package in a checkout, under `share/itbench` when installed, plus paths of the user."""

import sys
import sysconfig
from pathlib import Path

import itbench
from itbench.core.errors import UsageError

PARTS = ("scenarios", "playbooks", "metrics", "suites")


def home() -> Path:
    """The folder that holds `scenarios/`, `playbooks/`, `metrics/` and `suites/` of this installation.

    Raises:
        UsageError: the package was installed without them.
    """
    candidates = [
        Path(itbench.__file__).resolve().parent.parent,
        Path(sysconfig.get_path("data")) / "share" / "itbench",
        Path(sys.prefix) / "share" / "itbench",
    ]
    for candidate in candidates:
        if (candidate / "scenarios").is_dir() and (candidate / "playbooks").is_dir():
            return candidate
    raise UsageError(
        "the library of scenarios is missing",
        seen=str(candidates[0]),
        expected="scenarios/ and playbooks/ beside the package or under share/itbench",
        hint="reinstall itbench",
    )


def roots(extra: tuple[str, ...] = ()) -> tuple[Path, ...]:
    """All library folders, the user's own first.

    Raises:
        UsageError: a path of the user is no folder with the layout of a library.
    """
    own = []
    for text in extra:
        path = Path(text).expanduser().resolve()
        if not any((path / part).is_dir() for part in PARTS):
            raise UsageError(
                "not a library", seen=text, expected="a folder with " + ", ".join(f"{part}/" for part in PARTS)
            )
        own.append(path)
    return (*own, home())
