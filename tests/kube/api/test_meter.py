"""`/metrics` of the API server: counts of what it served, in the form that scrapers read."""

import asyncio
import re
from typing import Any

MAPS = "/api/v1/namespaces/default/configmaps"
SERIES = re.compile(r'^([a-z_:]+)(\{([a-z_]+="[^"]*",?)*\})? (-?[0-9.e+-]+)$')


async def _scrape(site: Any) -> dict[str, float]:
    """Series -> value; every line must parse, and belong to the family announced before it."""
    reply = await site.http("GET", "/metrics")
    assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4; charset=utf-8")
    found: dict[str, float] = {}
    family = ""
    for line in reply.body.decode().splitlines():
        if line.startswith("# TYPE "):
            family = line.split()[2]
        elif not line.startswith("# HELP "):
            hit = SERIES.match(line)
            assert hit is not None, line
            assert re.sub("_(bucket|sum|count)$", "", hit[1]) == family or hit[1] == family
            found[line.rsplit(" ", 1)[0]] = float(hit[4])
    return found


def _row(name: str, **labels: str) -> str:
    base = {"component": "apiserver", "group": "", "resource": "configmaps", "subresource": "", "version": "v1"}
    rows = sorted({**base, **labels}.items(), key=lambda row: (row[0] == "le", row[0]))
    text = ",".join(f'{key}="{value}"' for key, value in rows)
    return name + "{" + text + "}"


async def test_requests_are_counted_by_what_they_asked_for_and_what_came_of_it(site: Any) -> None:
    """Writes, dry runs, applies, errors and lists apart, each with durations and sizes."""
    await site.http("POST", MAPS, {"metadata": {"name": "x"}})
    await site.http("POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "y"}})
    for _ in range(3):
        await site.http("GET", f"{MAPS}/nosuch")
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"b"}}'
    kind = {"Content-Type": "application/apply-patch+yaml"}
    await site.http("PATCH", f"{MAPS}/x?fieldManager=me", body, headers=kind)
    await site.http("GET", MAPS)
    await site.http("GET", "/nosuch")
    found = await _scrape(site)
    total = "apiserver_request_total"
    assert found[_row(total, code="201", dry_run="", scope="resource", verb="POST")] == 1
    assert found[_row(total, code="201", dry_run="All", scope="resource", verb="POST")] == 1
    assert found[_row(total, code="404", dry_run="", scope="resource", verb="GET")] == 3
    assert found[_row(total, code="200", dry_run="", scope="resource", verb="APPLY")] == 1
    assert found[_row(total, code="200", dry_run="", scope="namespace", verb="LIST")] == 1
    assert sum(value for name, value in found.items() if name.startswith(total)) == 7
    seconds = "apiserver_request_duration_seconds"
    assert found[_row(f"{seconds}_bucket", dry_run="", scope="resource", verb="GET", le="+Inf")] == 3
    assert found[_row(f"{seconds}_count", dry_run="", scope="resource", verb="GET")] == 3
    assert found[_row("apiserver_response_sizes_bucket", scope="resource", verb="GET", le="1000")] == 3
    flow = 'apiserver_flowcontrol_dispatched_requests_total{flow_schema="exempt",priority_level="exempt"}'
    assert found[flow] == 7
    maps = len(site.plane.client("test").list("configmaps"))
    assert found['apiserver_resource_objects{group="",resource="configmaps"}'] == maps
    assert found['apiserver_current_inflight_requests{request_kind="readOnly"}'] == 1
    assert found['authentication_attempts{result="success"}'] == 7


async def test_watches_are_running_until_their_client_goes_away(site: Any) -> None:
    """A gauge goes up and down again, also when the connection is cut."""
    gauge = _row("apiserver_longrunning_requests", scope="namespace", verb="WATCH")
    url, headers = f"{site.server.url}{MAPS}?watch=1", {"Authorization": f"Bearer {site.token('admin')}"}
    async with site.session.get(url, headers=headers) as answer:
        await answer.content.readline()
        assert (await _scrape(site))[gauge] == 1
        answer.close()
    for _ in range(200):
        if (await _scrape(site))[gauge] == 0:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the watch is still counted")
