"""`tar` inside containers, for `kubectl cp`: packs files of the model, unpacks what the client sends. Called by exec sessions."""

import io
import tarfile
from posixpath import join, normpath

from itbench.core.clock import unix
from itbench.world.shell.machine import Machine


def _paths(machine: Machine, path: str) -> list[str]:
    """The file itself, or every file below a folder."""
    if machine.read(path) is not None:
        return [path]
    names = machine.entries(path)
    return [found for name in names or () for found in _paths(machine, join(path, name.rstrip("/")))]


def pack(machine: Machine, paths: list[str], folder: str) -> tuple[bytes, str]:
    """`tar cf - PATH...`: the archive, and what tar says on standard error."""
    buffer, errors = io.BytesIO(), ""
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in paths:
            found = _paths(machine, normpath(join(folder, path)))
            if not found:
                errors += f"tar: {path}: Cannot stat: No such file or directory\n"
            for each in found:
                data = (machine.read(each) or "").encode()
                info = tarfile.TarInfo(each.lstrip("/"))
                info.size, info.mtime = len(data), int(unix(machine.calendar()))
                archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue(), errors


def unpack(machine: Machine, data: bytes, folder: str) -> str:
    """`tar xf - -C FOLDER`: writes the files; returns what tar says on standard error."""
    errors = ""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for info in archive:
                member = archive.extractfile(info) if info.isfile() else None
                if member is None:
                    continue
                text = member.read().decode("utf-8", "replace")
                problem = machine.write(normpath(join("/", folder, info.name)), text)
                errors += f"tar: {info.name}: Cannot open: {problem}\n" if problem else ""
    except tarfile.TarError:
        return "tar: This does not look like a tar archive\n"
    return errors


def read_options(argv: list[str]) -> tuple[str, list[str], str]:
    """(`c`, `x` or nothing; paths; folder) of a tar command line that reads or writes its standard streams."""
    mode, paths, folder = "", [], "/"
    items = iter(argv[1:])
    for index, item in enumerate(items):
        if item in ("-C", "--directory"):
            folder = next(items, "/")
        elif item == "-f":
            next(items, "")
        elif (item.startswith("-") and item != "-") or index == 0:
            letters = item.lstrip("-")
            mode = mode or next((letter for letter in "cx" if letter in letters), "")
            if letters.endswith("f"):
                next(items, "")
        elif item != "-":
            paths.append(item)
    return mode, paths, folder
