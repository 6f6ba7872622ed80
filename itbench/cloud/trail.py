"""CloudTrail's event history: the estate's own past, and the audit log since hand-over. Asked by the front."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from itbench.cloud.child import ACCOUNT
from itbench.core.clock import EPOCH, rfc3339, unix
from itbench.core.ids import digest

PAGE = 50
DAYS = 90
"""CloudTrail keeps its event history this long."""


@dataclass(frozen=True)
class Event:
    """One management event: world second, who, service, action, the resource it is about."""

    t: float
    user: str
    service: str
    action: str
    resource: str
    details: str = ""


def _matches(event: Event, attribute: str, value: str) -> bool:
    return {
        "EventName": event.action,
        "ResourceName": event.resource,
        "Username": event.user,
        "EventSource": f"{event.service}.amazonaws.com",
    }.get(attribute) == value


def lookup(body: bytes, events: Iterable[Event]) -> dict[str, Any]:
    """The answer to LookupEvents: newest first, at most 50 a page, filtered by one attribute and by time.

    Args:
        body: the request as JSON (`LookupAttributes`, `StartTime`, `EndTime` in Unix seconds, `MaxResults`, `NextToken`).
        events: all that is known.
    """
    asked = json.loads(body or b"{}")
    start, end = float(asked.get("StartTime", 0)), float(asked.get("EndTime", 1e12))
    chosen = [
        event
        for event in sorted(events, key=lambda event: (-event.t, event.action, event.resource))
        if start <= unix(event.t) <= end
        and all(
            _matches(event, item["AttributeKey"], item["AttributeValue"]) for item in asked.get("LookupAttributes", ())
        )
    ]
    first, size = int(asked.get("NextToken") or 0), min(PAGE, int(asked.get("MaxResults") or PAGE))
    page = {"Events": [_event(event) for event in chosen[first : first + size]]}
    return page | ({"NextToken": str(first + size)} if len(chosen) > first + size else {})


def _event(event: Event) -> dict[str, Any]:
    identity = digest("event", event.t, event.action, event.resource).hex()
    text = {
        "eventTime": rfc3339(event.t),
        "eventSource": f"{event.service}.amazonaws.com",
        "eventName": event.action,
        "recipientAccountId": ACCOUNT,
        "userIdentity": {"userName": event.user},
        "requestParameters": json.loads(event.details) if event.details else {},
    }
    return {
        "EventId": f"{identity[:8]}-{identity[8:12]}-{identity[12:16]}-{identity[16:20]}-{identity[20:32]}",
        "EventName": event.action,
        "EventTime": unix(event.t),
        "EventSource": f"{event.service}.amazonaws.com",
        "Username": event.user,
        "ReadOnly": "false",
        "Resources": [{"ResourceName": event.resource}] if event.resource else [],
        "CloudTrailEvent": json.dumps(text),
    }


def world_day(day: str) -> float:
    """World seconds of nine o'clock UTC on a day `YYYY-MM-DD`: the hour at which an account is handed over."""
    from datetime import UTC, datetime

    return (datetime.fromisoformat(day).replace(hour=9, tzinfo=UTC) - EPOCH).total_seconds()
