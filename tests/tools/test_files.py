"""The workspace: everything inside, nothing outside, no way around through links."""

import os

import pytest

from itbench.tools.catalog import toolbox
from itbench.tools.files import OutsideWorkspace, listing, read_bytes, write_bytes


async def test_write_list_read(make_context):
    """A file written through the tool is listed and read back."""
    box = toolbox(make_context())
    assert (await box.call("files", {"action": "write", "path": "a/b.txt", "content": "hé"})).ok
    assert (await box.call("files", {"action": "list"})).text == "a/\na/b.txt"
    assert (await box.call("files", {"action": "read", "path": "a/b.txt"})).text == "hé"


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "", "."])
def test_paths_out_of_the_workspace_are_refused(tmp_path, path):
    """Neither read nor written."""
    for act in (lambda: read_bytes(tmp_path, path), lambda: write_bytes(tmp_path, path, b"x")):
        with pytest.raises(OutsideWorkspace):
            act()


def test_an_absolute_path_inside_is_understood(tmp_path):
    """Agents often give whole paths."""
    (tmp_path / "a").write_text("x")
    assert read_bytes(tmp_path, str(tmp_path / "a")) == b"x"


def test_links_are_not_followed(tmp_path):
    """A link to a secret, and a folder that is a link, lead nowhere, for reading and for writing."""
    outside, workspace = tmp_path / "outside", tmp_path / "ws"
    outside.mkdir()
    workspace.mkdir()
    (outside / "secret").write_text("truth")
    (workspace / "file").symlink_to(outside / "secret")
    (workspace / "folder").symlink_to(outside)
    for path in ("file", "folder/secret"):
        with pytest.raises(OSError):
            read_bytes(workspace, path)
        with pytest.raises(OSError):
            write_bytes(workspace, path, b"x")
    assert (outside / "secret").read_text() == "truth"
    assert listing(workspace) == ["file (link)", "folder (link)"]


def test_pipes_and_huge_files_are_refused_at_once(tmp_path):
    """A named pipe does not block the trial, a huge file does not fill its memory."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "big").write_bytes(b"x" * 11)
    with pytest.raises(OutsideWorkspace, match="regular"):
        read_bytes(tmp_path, "pipe")
    with pytest.raises(OutsideWorkspace, match="longer"):
        read_bytes(tmp_path, "big", 10)
