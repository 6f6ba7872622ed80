"""Small parts of table cells: ages, lists with an end, container columns. Used by all printers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from itbench.core.clock import parse_rfc3339
from itbench.kube.client import Obj

UNKNOWN, NONE, UNSET = "<unknown>", "<none>", "<unset>"
_DAY = 86400
_YEAR = 365 * _DAY


def human(seconds: float) -> str:
    """A duration as kubectl shows ages: `7s`, `4m3s`, `3h`, `2d4h`, `1y20d`."""
    if seconds < -1:
        return "<invalid>"
    total = max(int(seconds), 0)
    minutes, hours, days = total // 60, total // 3600, total // _DAY
    if total < 120:
        return f"{total}s"
    if minutes < 10:
        return _two(minutes, "m", total % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if total < 2 * _YEAR:
        return f"{days}d"
    years = total // _YEAR
    return _two(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


@dataclass(frozen=True, slots=True)
class Age:
    """A cell that depends on the time of asking.

    Attributes:
        since: world second counted from; None shows `missing`.
        form: text around the age, with one `{}`.
    """

    since: float | None
    form: str = "{}"
    missing: str = UNKNOWN

    def text(self, now: float) -> str:
        """The cell at a time."""
        return self.missing if self.since is None else self.form.format(human(now - self.since))


Cell = Any
Cells = list[Cell]


def moment(text: str | None) -> float | None:
    """World seconds of a timestamp, None for none."""
    return parse_rfc3339(text) if text else None


def age(obj: Obj) -> Age:
    """Age of an object."""
    return Age(moment(obj["metadata"].get("creationTimestamp")))


def joined(rows: Sequence[str], limit: int, empty: str = NONE) -> str:
    """The first rows and `+ N more...`."""
    if not rows:
        return empty
    text = ",".join(rows[:limit])
    return text if len(rows) <= limit else f"{text} + {len(rows) - limit} more..."


def containers(spec: Obj) -> tuple[str, str]:
    """Names and images of a pod spec."""
    rows = spec.get("containers") or ()
    return ",".join(row["name"] for row in rows), ",".join(row.get("image", "") for row in rows)


def labels_text(labels: Obj | None) -> str:
    """A label map on one line."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def words(rows: Iterable[str]) -> str:
    """Comma and blank between."""
    return ", ".join(rows)


def yes(value: Any) -> str:
    """A boolean as Go's printers show it in string cells."""
    return "True" if value else "False"
