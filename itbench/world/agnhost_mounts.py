"""The file tester of Kubernetes' test image (`agnhost mounttest`): says what is in mounted files; run through `agnhost`."""

from itbench.world.shell.interpreter import Command, Steps

_NEW = "mount-tester new file\n"
_NAMES = (
    *("fs_type", "file_mode", "file_perm", "file_owner"),
    *("rw_new_file", "new_file_0644", "new_file_0666", "new_file_0660", "new_file_0777"),
    *("file_content", "file_content_in_loop"),
)
LOOP_S = 180


def options(argv: list[str]) -> dict[str, str]:
    """`--name=value` and `--name value`, by name."""
    found: dict[str, str] = {}
    words = iter(argv)
    for word in words:
        if word.startswith("-"):
            key, equals, value = word.lstrip("-").partition("=")
            found[key] = value if equals else next(words, "")
    return found


def mounttest(call: Command) -> Steps:
    """mounttest --file_content=PATH …: one line or more for each thing asked for, in the program's order."""
    given, failed = options(call.argv[2:]), False
    for name in _NAMES:
        path = given.get(name, "")
        if not path:
            continue
        if name == "file_content_in_loop":
            yield from _loop(call, path, int(given.get("retry_time") or LOOP_S), given.get("break_on_expected_content"))
        else:
            failed |= not _test(call, name, path)
    yield 0.0
    return 1 if failed else 0


def _test(call: Command, name: str, path: str) -> bool:
    """One answer; whether there is one."""
    if "new_file" in name:
        error = call.machine.write(path, _NEW)
        if error:
            call.io.out(f'error writing new file "{path}": open {path}: {error.lower()}\n')
            return False
    if name == "fs_type":
        call.io.out(f'mount type of "{path}": {_type(call, path)}\n')
        return True
    text = call.machine.read(path)
    folder = text is None and call.machine.entries(path) is not None
    if text is None and not (folder and name in ("file_mode", "file_perm", "file_owner")):
        call.io.out(f'error reading file content for "{path}": open {path}: no such file or directory\n')
        return False
    if name == "file_owner":
        call.io.out(f'owner UID of "{path}": 0\nowner GID of "{path}": 0\n')
    elif name in ("file_mode", "file_perm"):
        what = "perms" if name == "file_perm" else "mode"
        call.io.out(f'{what} of file "{path}": {"drwxr-xr-x" if folder else "-rw-r--r--"}\n')
    else:
        call.io.out(f'content of file "{path}": {text}\n')
    return True


def _type(call: Command, path: str) -> str:
    for line in (call.machine.read("/proc/mounts") or "").splitlines():
        words = line.split()
        if len(words) > 2 and words[1] == path:
            return words[2]
    return "overlay"


def _loop(call: Command, path: str, seconds: int, wanted: str | None) -> Steps:
    """A line each second, until the time is over or the file holds what is wanted."""
    for _ in range(seconds):
        text = call.machine.read(path)
        if text is None:
            call.io.out(f'error reading file content for "{path}": open {path}: no such file or directory\n')
        else:
            call.io.out(f'content of file "{path}": {text}\n')
            if wanted not in (None, "false") and text == wanted:
                return 0
        yield 1.0
    return 0
