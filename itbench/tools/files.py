"""The `files` tool, and reading what an agent left in its workspace, without ever following its links out of it.

The trial's process can read more than the agent may, so a symbolic link in the workspace must not become a way around:
every component is opened relative to its parent, links are refused, and only regular files are read.
"""

import asyncio
import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from itbench.tools.context import ToolContext
from itbench.tools.registry import Tool, ToolResult

MAX_FILE = 1024 * 1024
MAX_ENTRIES = 1000


class OutsideWorkspace(ValueError):
    """A path that leaves the workspace, or something that is no regular file."""


def _parts(path: str, workspace: Path) -> list[str]:
    pure = PurePosixPath(path)
    if pure.is_absolute():
        try:
            pure = pure.relative_to(PurePosixPath(workspace))
        except ValueError as error:
            raise OutsideWorkspace(f"{path!r} is not in the workspace; give a path relative to it") from error
    if ".." in pure.parts:
        raise OutsideWorkspace(f"{path!r} leaves the workspace; give a path relative to it")
    return list(pure.parts)


@contextlib.contextmanager
def _folder(workspace: Path, parts: list[str], *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder that `parts` name, opened step by step without following links."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    current = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=current)
            below = os.open(part, flags, dir_fd=current)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def read_bytes(workspace: Path, path: str, limit: int = MAX_FILE) -> bytes:
    """The content of a regular file in the workspace.

    Raises:
        OutsideWorkspace: the path leaves the workspace, passes a link, is no regular file, or is longer than `limit`.
        OSError: it cannot be opened.
    """
    *folders, name = _parts(path, workspace) or [""]
    if not name:
        raise OutsideWorkspace(f"{path!r} names no file")
    with _folder(workspace, folders) as folder:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OutsideWorkspace(f"{path!r} is a folder, not a regular file")
        with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OutsideWorkspace(f"{path!r} is not a regular file")
            data = file.read(limit + 1)
    if len(data) > limit:
        raise OutsideWorkspace(f"{path!r} is longer than {limit} bytes")
    return data


def write_bytes(workspace: Path, path: str, data: bytes) -> None:
    """Write a file in the workspace, making folders on the way; errors as in `read_bytes`."""
    *folders, name = _parts(path, workspace) or [""]
    if not name:
        raise OutsideWorkspace(f"{path!r} names no file")
    with _folder(workspace, folders, make=True) as folder:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, 0o644, dir_fd=folder), "wb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OutsideWorkspace(f"{path!r} is not a regular file")
            file.truncate(0)
            file.write(data)


def listing(workspace: Path, path: str = "") -> list[str]:
    """Entries below a folder of the workspace, sorted, folders with a slash; links are named but not followed."""
    found: list[str] = []

    def walk(folder: int, prefix: str) -> None:
        for entry in sorted(os.scandir(folder), key=lambda item: item.name):
            if len(found) >= MAX_ENTRIES:
                return
            if entry.is_dir(follow_symlinks=False):
                found.append(f"{prefix}{entry.name}/")
                below = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                try:
                    walk(below, f"{prefix}{entry.name}/")
                finally:
                    os.close(below)
            else:
                found.append(f"{prefix}{entry.name}" + (" (link)" if entry.is_symlink() else ""))

    parts = _parts(path, workspace) if path else []
    with _folder(workspace, parts) as folder:
        walk(folder, "".join(f"{part}/" for part in parts))
    return found


def _act(arguments: Mapping[str, Any], workspace: Path) -> ToolResult:
    action, path = arguments["action"], arguments.get("path", "")
    try:
        if action == "list":
            return ToolResult("\n".join(listing(workspace, path)) or "(empty)")
        if action == "read":
            return ToolResult(read_bytes(workspace, path).decode("utf-8", "replace"))
        if "content" not in arguments:
            return ToolResult("files: write needs content", ok=False)
        data = arguments["content"].encode()
        write_bytes(workspace, path, data)
        return ToolResult(f"wrote {len(data)} bytes to {path}")
    except (OutsideWorkspace, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return ToolResult(f"files: {action} {path}: {reason}", ok=False)


async def _files(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    if not context.endpoints.workspace:
        return ToolResult("files: this task has no workspace", ok=False)
    return await asyncio.to_thread(_act, arguments, Path(context.endpoints.workspace))


FILES = Tool(
    name="files",
    description="List, read or write files of your workspace; paths are relative to it.",
    input_schema={
        "type": "object",
        "required": ["action"],
        "additionalProperties": False,
        "properties": {
            "action": {"enum": ["list", "read", "write"]},
            "path": {"type": "string"},
            "content": {"type": "string", "description": "for write: the whole new content"},
        },
    },
    call=_files,
)
