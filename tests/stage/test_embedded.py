"""The embedded environment, end to end: stage by Ansible, look, save, restore, revert, end."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from itbench.core import codec
from itbench.core.documents.base import load
from itbench.core.documents.scenario import Scenario
from itbench.core.errors import EnvironmentFault, UsageError
from itbench.library.store import Library
from itbench.stage.embedded import EmbeddedEnvironment, parse_clock
from itbench.stage.environment import Staging
from itbench.tools.kubectl import binary

LIBRARY = Library()


def _staging(folder: Path, scenario: Scenario) -> Staging:
    app = scenario.environment.app
    assert app is not None
    return Staging(
        private=folder,
        roots=LIBRARY.roots,
        app=app.id,
        faults=scenario.faults,
        noise=scenario.noise,
        clock="stepped:5",
    )


def _scenario(slug: str) -> Scenario:
    return load(Scenario, LIBRARY.roots[0] / "scenarios" / "sre" / slug / "scenario.yaml")


async def _kubectl(environment: EmbeddedEnvironment, *words: str) -> tuple[int, str]:
    argv = [binary(), "--kubeconfig", str(environment.doors.kubeconfigs["agent"]), *words]
    done = await asyncio.to_thread(subprocess.run, argv, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


async def test_a_scenario_is_staged_saved_restored_and_reverted(tmp_path: Path) -> None:
    """Green at the gate, red after injection, equal after a round trip through a checkpoint, green again after the revert."""
    scenario = _scenario("2-svc-selector-details")
    first = EmbeddedEnvironment(_staging(tmp_path / "a", scenario))
    seen: list[float] = []

    async def gate() -> None:
        await first.advance(120)
        seen.append(first.journeys(first.now - 30, first.now)["page"][-1][2])

    try:
        await first.start()
        await first.stage(gate)
        assert seen[0] > 0.999
        assert first.marks()["fault"] == pytest.approx(first.marks()["staged"] + 60, abs=1.0)
        saved = codec.dumps(first.save())
        await first.advance(60)
        assert first.journeys(first.now - 10, first.now)["page"][-1][2] < 0.5
        rows = first.journeys(0, first.now)
        assert first.audit() == []
    finally:
        await first.close()
    assert list((tmp_path / "a").glob("kubeconfig*")) == []

    second = EmbeddedEnvironment(_staging(tmp_path / "b", scenario))
    try:
        await second.restore(codec.loads(saved))
        await second.advance(60)
        assert repr(second.journeys(0, second.now)) == repr(rows)
        await _check_identity(second)
        await second.revert(scenario.faults[0])
        await second.advance(120)
        assert second.journeys(second.now - 30, second.now)["page"][-1][2] > 0.999
    finally:
        await second.close()


async def _check_identity(environment: EmbeddedEnvironment) -> None:
    """The engineer on call can work in the namespace and look around, and cannot see what disturbs or what is secret."""
    environment.hand_over()
    assert (await _kubectl(environment, "auth", "can-i", "patch", "services", "-n", "bookinfo"))[1].strip() == "yes"
    assert (await _kubectl(environment, "get", "pods", "-A"))[0] == 0
    for forbidden in (
        ("stresschaos.chaos-mesh.org", "-n", "node-ops"),
        ("secrets", "-n", "monitoring"),
        ("clusterroles",),
    ):
        code, text = await _kubectl(environment, "get", *forbidden)
        assert code != 0
        assert "Forbidden" in text
    await environment.end_agent()


async def test_a_baseline_that_is_not_green_ends_staging_with_its_own_cause(tmp_path: Path) -> None:
    """What the gate raises comes out of `stage`, not Ansible's account of it; faults are never injected."""
    environment = EmbeddedEnvironment(_staging(tmp_path, _scenario("2-svc-selector-details")))

    async def gate() -> None:
        raise EnvironmentFault("page is red", cause="baseline_not_green")

    try:
        await environment.start()
        with pytest.raises(EnvironmentFault) as caught:
            await environment.stage(gate)
        assert caught.value.cause == "baseline_not_green"
        details = environment.client("grader").get("services", "details", "bookinfo")
        assert details["spec"]["selector"] == {"app": "details"}
    finally:
        await environment.close()


@pytest.mark.parametrize("text", ["", "fast", "scaled", "scaled:0", "stepped:x", "live:3"])
def test_a_clock_that_makes_no_sense_is_a_usage_error(text: str) -> None:
    """The error shows what was asked and what there is."""
    with pytest.raises(UsageError, match=r"live, scaled:N or stepped:S"):
        parse_clock(text)
