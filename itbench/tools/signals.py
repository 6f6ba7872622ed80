"""The `promql` and `alerts` tools: what the telemetry of the estate says, over the HTTP APIs that dashboards use."""

from collections.abc import Mapping
from typing import Any

import aiohttp

from itbench.tools.context import ToolContext
from itbench.tools.registry import Tool, ToolResult

MAX_SERIES = 200
MAX_BYTES = 8 * 1024 * 1024


async def _get(url: str, params: Mapping[str, str]) -> Any:
    """The decoded answer of a GET; Prometheus explains its errors in the body, so a status is no exception."""
    async with aiohttp.ClientSession(trust_env=False) as session, session.get(url, params=params) as response:
        if (response.content_length or 0) > MAX_BYTES:
            raise ValueError(f"answer longer than {MAX_BYTES} bytes; ask for less")
        return await response.json(content_type=None)


def _name(labels: Mapping[str, str]) -> str:
    inner = ", ".join(f'{key}="{value}"' for key, value in sorted(labels.items()) if key != "__name__")
    return labels.get("__name__", "") + "{" + inner + "}"


def _lines(data: Mapping[str, Any]) -> list[str]:
    """One line for each series: name and value, or name and `time value` pairs."""
    kind, result = data["resultType"], data["result"]
    if kind in ("scalar", "string"):
        return [f"{result[1]}"]
    lines = []
    for series in result[:MAX_SERIES]:
        if kind == "vector":
            lines.append(f"{_name(series['metric'])} {series['value'][1]}")
        else:
            points = " ".join(f"{point[0]:.0f}:{point[1]}" for point in series["values"])
            lines.append(f"{_name(series['metric'])} {points}")
    if len(result) > MAX_SERIES:
        lines.append(f"... {len(result) - MAX_SERIES} more series; aggregate or select")
    return lines


async def _promql(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    base = context.endpoints.prometheus_url
    if not base:
        return ToolResult("promql: this task has no Prometheus", ok=False)
    ranged = [key for key in ("start", "end", "step") if key in arguments]
    if ranged and len(ranged) < 3:
        return ToolResult(f"promql: a range query needs start, end and step; only {', '.join(ranged)} given", ok=False)
    keys = ("start", "end", "step") if ranged else ("time",)
    params = {"query": arguments["query"]} | {key: str(arguments[key]) for key in keys if key in arguments}
    answer = await _get(f"{base.rstrip('/')}/api/v1/{'query_range' if ranged else 'query'}", params)
    if answer.get("status") != "success":
        return ToolResult(f"promql: {answer.get('errorType')}: {answer.get('error')}", ok=False, structured=answer)
    return ToolResult("\n".join(_lines(answer["data"])) or "(no series)", structured=answer["data"])


def _alert_line(alert: Mapping[str, Any]) -> str:
    labels = dict(alert.get("labels", {}))
    name = labels.pop("alertname", "?")
    summary = alert.get("annotations", {}).get("summary") or alert.get("annotations", {}).get("description", "")
    return f"{alert.get('state', '')} {name} since {alert.get('activeAt', '?')} {_name(labels)} {summary}".rstrip()


async def _alerts(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    base = context.endpoints.prometheus_url
    if not base:
        return ToolResult("alerts: this task has no Prometheus", ok=False)
    answer = await _get(f"{base.rstrip('/')}/api/v1/alerts", {})
    if answer.get("status") != "success":
        return ToolResult(f"alerts: {answer.get('errorType')}: {answer.get('error')}", ok=False, structured=answer)
    wanted = arguments.get("state", "")
    alerts = [alert for alert in answer["data"]["alerts"] if wanted in ("", alert.get("state"))]
    alerts.sort(key=lambda alert: sorted(alert.get("labels", {}).items()))
    return ToolResult("\n".join(map(_alert_line, alerts)) or "no alerts", structured=alerts)


_TIME = {"type": ["string", "number"], "description": "RFC 3339 or Unix seconds"}

PROMQL = Tool(
    name="promql",
    description="Evaluate a PromQL query: now, at `time`, or over a range when start, end and step are given.",
    input_schema={
        "type": "object",
        "required": ["query"],
        "additionalProperties": False,
        "properties": {
            "query": {"type": "string", "minLength": 1},
            "time": _TIME,
            "start": _TIME,
            "end": _TIME,
            "step": {"type": ["string", "number"], "description": "seconds, or a duration such as 30s"},
        },
    },
    call=_promql,
    read_only=True,
)

ALERTS = Tool(
    name="alerts",
    description="The alerts that are pending or firing now.",
    input_schema={
        "type": "object",
        "additionalProperties": False,
        "properties": {"state": {"enum": ["pending", "firing"]}},
    },
    call=_alerts,
    read_only=True,
)
