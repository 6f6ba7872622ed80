"""The door through which a playbook asks for the verdict and for time."""

import aiohttp
import pytest

from itbench.core.errors import EnvironmentFault
from itbench.stage.control import Control


async def _ask(control: Control, path: str, token: str) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession() as session, session.get(control.url + path, headers=headers) as answer:
        return answer.status, await answer.text()


async def test_gate_and_wait_answer_when_they_are_done() -> None:
    """The gate answers green once the baseline is judged, a wait once time has passed and been marked."""
    seen: list[object] = []

    async def gate() -> None:
        seen.append("judged")

    async def advance(seconds: float) -> None:
        seen.append(seconds)

    async with Control(gate, advance, seen.append) as control:
        assert await _ask(control, "/gate", control.token) == (200, "green")
        assert await _ask(control, "/wait?seconds=60&mark=faults.1", control.token) == (200, "done")
        assert control.passed
    assert seen == ["judged", 60.0, "faults.1"]


async def test_what_the_gate_raises_is_kept_for_the_environment() -> None:
    """A baseline that is not green answers 409 and leaves its own error, not Ansible's, as the explanation."""

    async def gate() -> None:
        raise EnvironmentFault("buy is red", cause="baseline_not_green")

    async def advance(seconds: float) -> None:
        raise AssertionError("nothing waits here")

    async with Control(gate, advance) as control:
        assert (await _ask(control, "/gate", control.token))[0] == 409
        assert isinstance(control.error, EnvironmentFault)
        assert control.error.cause == "baseline_not_green"
        assert not control.passed


@pytest.mark.parametrize("token", ["", "wrong"])
async def test_nobody_without_the_token_is_heard(token: str) -> None:
    """A request without the right token reaches neither gate nor clock."""

    async def gate() -> None:
        raise AssertionError("asked without a token")

    async def advance(seconds: float) -> None:
        raise AssertionError("asked without a token")

    async with Control(gate, advance) as control:
        assert (await _ask(control, "/gate", token))[0] == 401
        assert control.error is None
