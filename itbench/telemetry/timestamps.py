"""Which metrics hold points in time: their values are translated at the doors, like the times of samples.

A client's clock shows wall time while the world has its own calendar; `time() - kube_pod_created` has to be an age for both.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from itbench.telemetry.labels import NAME
from itbench.telemetry.metrics import Chunk

_HOLDS_TIME = re.compile(
    r".*_timestamp(_seconds)?|.*_(start|boot|last_seen|last_reload)_time(_seconds)?|node_time_seconds|container_last_seen"
    r"|kube_.*_(created|completion_time|start_time|schedule_time|scheduled_time|ready_time|deletion_time|successful_time)"
    r"|ALERTS_FOR_STATE|.*_not_(after|before)(_seconds)?"
)


@lru_cache(maxsize=4096)
def holds_time(name: str) -> bool:
    """Whether the values of this metric are Unix seconds, by the naming conventions of the public exporters."""
    return _HOLDS_TIME.fullmatch(name) is not None


def shift(chunks: Sequence[Chunk], seconds: float) -> list[Chunk]:
    """The chunks with `seconds` added to values that are points in time; 0 (never) stays 0."""
    shifted = []
    for chunk in chunks:
        columns = [number for number, labels in enumerate(chunk.labels) if holds_time(dict(labels).get(NAME, ""))]
        if columns:
            values = chunk.v.copy()
            for column in columns:
                there = values[:, column] > 0
                values[there, column] += seconds
            chunk = Chunk(chunk.labels, chunk.t, values, chunk.ids)
        shifted.append(chunk)
    return shifted
