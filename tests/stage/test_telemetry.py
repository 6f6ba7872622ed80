"""The telemetry servers of an embedded estate: what is silenced stays with the estate, and who asks pays once."""

from pathlib import Path
from typing import Any

import aiohttp

from itbench.core import codec
from itbench.stage.embedded import EmbeddedEnvironment
from itbench.stage.environment import Staging


def _environment(folder: Path) -> EmbeddedEnvironment:
    return EmbeddedEnvironment(Staging(private=folder, roots=(), app="", clock="stepped:5"))


async def _get(url: str) -> Any:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return await answer.json()


async def _silence(environment: EmbeddedEnvironment, job: str) -> None:
    start = environment.pacer.to_wire(environment.now)
    body = {
        "matchers": [{"name": "job", "value": job, "isRegex": False}],
        "startsAt": str(start),
        "endsAt": str(start + 3600),
        "createdBy": "on call",
        "comment": "quiet",
    }
    url = f"{environment.doors.alertmanager_url}/api/v2/silences"
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as answer:
        assert answer.status == 200


async def test_silences_stay_with_the_estate_through_a_checkpoint(tmp_path: Path) -> None:
    first = _environment(tmp_path / "a")
    try:
        await first.start()
        await _silence(first, "db")
        saved = codec.dumps(first.save())
    finally:
        await first.close()
    second = _environment(tmp_path / "b")
    try:
        await second.restore(codec.loads(saved))
        await _silence(second, "shop")
        shown = await _get(f"{second.doors.alertmanager_url}/api/v2/silences")
        assert [each["matchers"][0]["value"] for each in shown] == ["db", "shop"]
        assert [(each.matchers, each.created_by) for each in second.silences()] == [
            ([("job", "=", "db")], "on call"),
            ([("job", "=", "shop")], "on call"),
        ]
    finally:
        await second.close()


async def test_a_request_costs_a_step_and_inside_a_tool_call_nothing_more(tmp_path: Path) -> None:
    environment = _environment(tmp_path)
    steps: list[float] = []
    try:
        await environment.start()
        environment.pacer.on_step = lambda: steps.append(environment.now)
        environment.hand_over()
        start = environment.now
        urls = [
            f"{environment.doors.prometheus_url}/api/v1/query?query=up",
            f"{environment.doors.alertmanager_url}/api/v2/alerts",
            f"{environment.doors.loki_url}/loki/api/v1/labels",
        ]
        for url in urls:
            await _get(url)
        assert (len(steps), environment.now - start) == (3, 15.0)
        with environment.pacer.tool_call():
            for url in urls:
                await _get(url)
        assert (len(steps), environment.now - start) == (3, 20.0)
    finally:
        await environment.close()


async def test_prometheus_names_the_alertmanager_that_it_tells(tmp_path: Path) -> None:
    environment = _environment(tmp_path)
    try:
        await environment.start()
        (active,) = (await _get(f"{environment.doors.prometheus_url}/api/v1/alertmanagers"))["data"][
            "activeAlertmanagers"
        ]
        assert active["url"] == f"{environment.doors.alertmanager_url}/api/v2/alerts"
    finally:
        await environment.close()
