"""A fresh control plane for each test, made once per process and loaded from then on."""

from functools import cache
from typing import Any

from itbench.core.ids import Ids
from itbench.kube.plane import ControlPlane


@cache
def _saved() -> dict[str, Any]:
    return ControlPlane(ids=Ids(1)).save()


def fresh_plane() -> ControlPlane:
    """A control plane just after its start."""
    return ControlPlane.load(_saved())
