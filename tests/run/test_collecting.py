"""Collection scripts that agents deliver: what they leave, what they may not, when they are ended."""

import pytest

from itbench.agents.isolation import landlock
from itbench.run.collecting import collect, deliverable

needs_landlock = pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock")


async def run(tmp_path, script, **limits):
    return await collect(script, "apiVersion: v1\nkind: Config\n", 1, tmp_path / "run", **limits)


@needs_landlock
@pytest.mark.parametrize(
    ("script", "data", "cause", "detail"),
    [
        ("echo '{\"items\": []}' > collected_data.json", {"items": []}, "", ""),
        ("exit 3", None, "", "no collected_data.json"),
        ("echo nonsense > collected_data.json", None, "artifact_error", "is not JSON"),
        ("ln -s /etc/passwd collected_data.json", None, "", "no collected_data.json"),
        ("mkdir collected_data.json", None, "", "no collected_data.json"),
    ],
)
async def test_what_a_script_leaves_is_read_for_what_it_is(tmp_path, script, data, cause, detail):
    came = await run(tmp_path, script)
    assert (came.data, came.cause) == (data, cause) and detail in came.detail


@needs_landlock
async def test_a_script_that_does_not_end_is_ended_with_all_that_it_started(tmp_path):
    came = await run(tmp_path, "sleep 600 & sleep 600", time_s=2.0)
    assert came.cause == "artifact_timeout" and came.data is None


@needs_landlock
async def test_a_script_reads_and_writes_only_its_own_folder(tmp_path):
    (tmp_path / "secret").write_text("truth")
    script = f"cat {tmp_path}/secret > x; echo 1 > {tmp_path}/written; echo 2 > {tmp_path}/run/script.sh"
    await run(tmp_path, script)
    assert "truth" not in (tmp_path / "run" / "work" / "x").read_text()
    assert not (tmp_path / "written").exists() and "secret" in (tmp_path / "run" / "script.sh").read_text()


@needs_landlock
async def test_a_script_sees_no_variables_of_the_user_and_finds_kubectl(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    script = 'printf \'{"k": "%s", "p": "%s"}\' "$OPENAI_API_KEY" "$(command -v kubectl)" > collected_data.json'
    came = await run(tmp_path, script)
    assert came.data["k"] == "" and came.data["p"].endswith("/bin/kubectl")


def test_a_deliverable_is_an_ordinary_text_file_of_bounded_length(tmp_path):
    (tmp_path / "good").write_text("x")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "long").write_text("x" * 100)
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert deliverable(tmp_path, "good") == "x" and deliverable(tmp_path, "long", limit=10) is None
    assert [deliverable(tmp_path, name) for name in ("binary", "link", "absent", ".")] == [None] * 4
