"""The everyday commands of a slim image: files, text, processes, environment. Called by the interpreter through `TOOLS`."""

import re
from datetime import timedelta
from math import inf

from itbench.core.clock import EPOCH, unix
from itbench.world.shell.interpreter import Command, Exit, Io, Steps, Tool
from itbench.world.shell.numbers import NUMBERS
from itbench.world.shell.options import inputs, options_of
from itbench.world.shell.texts import TEXTS

_HALF_A_YEAR_S = 182 * 86400.0
"""Older files are listed with their year."""
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def cat(call: Command) -> int:
    """cat FILE..."""
    texts, code = inputs(call, [item for item in call.argv[1:] if item not in ("-n", "-A")])
    for _, text in texts:
        call.io.out(text)
    return code


def echo(call: Command) -> int:
    """echo [-n] [-e] WORD..."""
    words, end, escapes = call.argv[1:], "\n", False
    while words and words[0] in ("-n", "-e", "-ne", "-en"):
        end = "" if "n" in words[0] else end
        escapes = escapes or "e" in words[0]
        words = words[1:]
    text = " ".join(words)
    call.io.out((_unescape(text) if escapes else text) + end)
    return 0


def _unescape(text: str) -> str:
    table = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "0": "\0", "a": "\a"}
    return re.sub(r"\\([ntr\\0a])", lambda hit: table[hit[1]], text)


def printf(call: Command) -> int:
    """printf FORMAT ARG..."""
    if len(call.argv) < 2:
        return call.fail("usage: printf FORMAT [ARGUMENT...]", 2)
    pattern, values = _unescape(call.argv[1]), call.argv[2:]
    holes = len(re.findall(r"%[-0-9.]{0,5}[sdif]", pattern))
    while True:
        call.io.out(_fill(pattern, values[:holes]))
        values = values[holes:]
        if not values or not holes:
            return 0


def _fill(pattern: str, values: list[str]) -> str:
    left = iter(values)
    return re.sub(
        r"%([-0-9.]{0,5})([sdif])|%%", lambda hit: _filled(hit, "" if hit[0] == "%%" else next(left, "")), pattern
    )


def _filled(hit: "re.Match[str]", value: str) -> str:
    if hit[0] == "%%":
        return "%"
    try:
        number = float(value or 0) if hit[2] == "f" else int(value or 0) if hit[2] in "di" else value
    except ValueError:
        number = 0
    return f"%{hit[1]}{hit[2]}" % number


def ls(call: Command) -> int:
    """ls [-l] [-a] PATH..."""
    options, paths = options_of(call.argv[1:])
    code = 0
    for path in paths or ["."]:
        full = call.shell.path(path)
        names = call.machine.entries(full)
        if names is None and call.machine.read(full) is not None:
            names, full = [path], call.shell.cwd
        if names is None:
            call.io.err(f"ls: {path}: No such file or directory\n")
            code = 1
            continue
        shown = [name for name in sorted(names) if name != ".keep" and (options.keys() & {"a", "A"} or name[0] != ".")]
        listed = names != [path]
        if "a" in options and listed:
            shown = ["./", "../", *shown]
        if len(paths) > 1 and listed:
            call.io.out(f"{path}:\n")
        if "l" in options and listed:
            call.io.out(f"total {4 * len(shown)}\n")
        for name in shown:
            call.io.out(_long(call, full, name) if "l" in options else f"{name.rstrip('/')}\n")
    return code


def _long(call: Command, folder: str, name: str) -> str:
    path = call.shell.path(f"{folder.rstrip('/')}/{name.rstrip('/')}") if not name.startswith("/") else name
    is_folder = name.endswith("/")
    size = 4096 if is_folder else len((call.machine.read(path) or "").encode())
    mode = "drwxr-xr-x    2" if is_folder else "-rw-r--r--    1"
    made, now = call.machine.modified(path), call.machine.calendar()
    recent = now - _HALF_A_YEAR_S < made <= now
    when = (EPOCH + timedelta(seconds=made)).strftime("%b %d %H:%M" if recent else "%b %d  %Y")
    return f"{mode} root     root     {size:>9} {when} {name.rstrip('/')}\n"


def env(call: Command) -> "int | Steps":
    """env / printenv [NAME]"""
    everything = {**call.machine.env, **call.shell.variables}
    if call.name.endswith("printenv") and len(call.argv) > 1:
        value = everything.get(call.argv[1])
        if value is None:
            return 1
        call.io.out(value + "\n")
        return 0
    for key, value in everything.items():
        call.io.out(f"{key}={value}\n")
    return 0


def copy(call: Command) -> int:
    """cp / mv FILE TARGET"""
    options, rest = options_of(call.argv[1:])
    if len(rest) < 2:
        return call.fail("missing file operand")
    target = call.shell.path(rest[-1])
    code = 0
    for source in rest[:-1]:
        text = call.machine.read(call.shell.path(source))
        if text is None:
            code = call.fail(f"can't stat '{source}': No such file or directory")
            continue
        into = call.machine.entries(target) is not None
        path = f"{target.rstrip('/')}/{source.rsplit('/', 1)[-1]}" if into else target
        error = call.machine.write(path, text)
        if error:
            code = call.fail(f"can't create '{path}': {error}")
            continue
        if "v" in options:
            call.io.out(f"'{source}' -> '{path}'\n")
        if call.name.endswith("mv"):
            _take_away(call, call.shell.path(source))
    return code


def _take_away(call: Command, path: str) -> bool:
    """Remove a file; its folder stays, also when it is empty then."""
    folder = path.rsplit("/", 1)[0]
    gone = call.machine.remove(path)
    if gone and folder and call.machine.entries(folder) is None:
        call.machine.write(f"{folder}/.keep", "")
    return gone


def rm(call: Command) -> int:
    """rm [-f] [-r] PATH..."""
    options, rest = options_of(call.argv[1:])
    code = 0
    for path in rest:
        full = call.shell.path(path)
        inner = call.machine.entries(full) if "r" in options or "R" in options else None
        for name in inner or ():
            rm(Command(call.shell, ["rm", "-rf", f"{full}/{name.rstrip('/')}"], call.io))
        gone = call.machine.remove(full) if inner is not None or "r" in options else _take_away(call, full)
        if not gone and "f" not in options and inner is None:
            code = call.fail(f"can't remove '{path}': No such file or directory")
    return code


def make(call: Command) -> int:
    """mkdir -p PATH..., touch PATH..."""
    _, rest = options_of(call.argv[1:])
    code = 0
    for path in rest:
        full = call.shell.path(path)
        target = f"{full}/.keep" if call.name.endswith("mkdir") else full
        if call.machine.read(target) is None:
            error = call.machine.write(target, "")
            code = call.fail(f"can't create directory '{path}': {error}") if error else code
    return code


def tee(call: Command) -> int:
    """tee [-a] FILE..."""
    options, rest = options_of(call.argv[1:])
    call.io.out(call.io.stdin)
    for path in rest:
        full = call.shell.path(path)
        before = (call.machine.read(full) or "") if "a" in options else ""
        error = call.machine.write(full, before + call.io.stdin)
        if error:
            return call.fail(f"{path}: {error}")
    return 0


def ps(call: Command) -> int:
    """ps"""
    call.io.out("PID   USER     TIME  COMMAND\n")
    for pid, user, command in call.machine.processes():
        call.io.out(f"{pid:>5} {user:<8} 0:00 {command}\n")
    return 0


def df(call: Command) -> int:
    """df [-h]"""
    human = any("h" in item for item in call.argv[1:] if item.startswith("-"))
    row = ("98.3G", "21.4G", "76.9G") if human else ("103081248", "22442112", "80639136")
    call.io.out(f"Filesystem           {'Size' if human else '1K-blocks':>9}      Used Available Use% Mounted on\n")
    call.io.out(f"overlay              {row[0]:>9} {row[1]:>9} {row[2]:>9}  22% /\n")
    return 0


def free(call: Command) -> int:
    """free [-m]"""
    used, total = call.machine.memory()
    scale = 1 if any("m" in item for item in call.argv[1:]) else 1024
    call.io.out("              total        used        free      shared  buff/cache   available\n")
    cells = [int(total * scale), int(used * scale), int((total - used) * scale), 0, 0, int((total - used) * scale)]
    call.io.out("Mem:   " + "".join(f"{cell:>12}" for cell in cells) + "\n")
    call.io.out("Swap:  " + "".join(f"{cell:>12}" for cell in (0, 0, 0)) + "\n")
    return 0


def hostname(call: Command) -> int:
    """hostname"""
    if "-i" in call.argv[1:]:
        found = call.machine.resolve(call.machine.hostname)
        call.io.out((found[0] if found else "127.0.0.1") + "\n")
    else:
        call.io.out(call.machine.hostname + "\n")
    return 0


def date(call: Command) -> int:
    """date [-u] [+FORMAT]"""
    moment = EPOCH + timedelta(seconds=call.machine.calendar())
    pattern = next((item[1:] for item in call.argv[1:] if item.startswith("+")), "%a %b %e %H:%M:%S UTC %Y")
    pattern = pattern.replace("%s", str(int(unix(call.machine.calendar()))))
    call.io.out(moment.strftime(pattern) + "\n")
    return 0


def identity(call: Command) -> int:
    """id, whoami"""
    user = call.machine.user
    number = 0 if user == "root" else 1000
    call.io.out(
        f"{user}\n"
        if call.name.endswith("whoami")
        else f"uid={number}({user}) gid={number}({user}) groups={number}({user})\n"
    )
    return 0


def uname(call: Command) -> int:
    """uname [-a]"""
    everything = f"Linux {call.machine.hostname} 6.8.0-64-generic #67-Ubuntu SMP x86_64 GNU/Linux\n"
    call.io.out(everything if "-a" in call.argv[1:] else "6.8.0-64-generic\n" if "-r" in call.argv[1:] else "Linux\n")
    return 0


def sleep(call: Command) -> Steps:
    """sleep N[s|m|h|d]..."""
    total = 0.0
    for item in call.argv[1:]:
        hit = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", item)
        if item in ("infinity", "inf"):
            total = inf
        elif hit is None:
            return call.fail(f"invalid number '{item}'")
        else:
            total += float(hit[1]) * _UNITS[hit[2] or "s"]
    if len(call.argv) < 2:
        return call.fail("missing operand")
    yield total
    return 0


def test(call: Command) -> int:
    """test EXPR, [ EXPR ]"""
    words = call.argv[1:]
    if call.name == "[":
        if not words or words[-1] != "]":
            return call.fail("missing ]", 2)
        words = words[:-1]
    elif call.name == "[[":
        if not words or words[-1] != "]]":
            return call.fail("missing ]]", 2)
        words = words[:-1]
    negate = bool(words) and words[0] == "!"
    words = words[1:] if negate else words
    return int(_holds(call, words) is negate)


def _holds(call: Command, words: list[str]) -> bool:
    if len(words) == 1:
        return words[0] != ""
    if len(words) == 2:
        flag, value = words
        path = call.shell.path(value)
        content = call.machine.read(path)
        return {
            "-z": value == "",
            "-n": value != "",
            "-f": content is not None,
            "-r": content is not None,
            "-w": content is not None,
            "-x": content is not None,
            "-s": bool(content),
            "-d": content is None and call.machine.entries(path) is not None,
            "-e": content is not None or call.machine.entries(path) is not None,
        }.get(flag, False)
    if len(words) != 3:
        return False
    left, op, right = words
    if op in ("=", "==", "!="):
        return (left == right) is (op != "!=")
    try:
        a, b = int(left), int(right)
    except ValueError:
        return False
    return {"-eq": a == b, "-ne": a != b, "-lt": a < b, "-le": a <= b, "-gt": a > b, "-ge": a >= b}.get(op, False)


def change_folder(call: Command) -> int:
    """cd PATH"""
    target = call.shell.path(call.argv[1] if len(call.argv) > 1 else "/root")
    if call.machine.entries(target) is None:
        return call.fail(f"can't cd to {target}: No such file or directory", 2)
    call.shell.cwd = target
    return 0


def assign(call: Command) -> int:
    """export / set / unset"""
    for item in call.argv[1:]:
        name, mark, value = item.partition("=")
        if call.name == "unset":
            call.shell.variables.pop(name, None)
        elif mark and name.isidentifier():
            call.shell.variables[name] = value
    return 0


def leave(call: Command) -> int:
    """exit [N]"""
    code = call.argv[1] if len(call.argv) > 1 else str(call.shell.code)
    raise Exit(int(code) if code.isdigit() else 2)


def nested(call: Command) -> Steps:
    """sh -c SCRIPT, sh FILE"""
    argv = call.argv[1:]
    while argv and argv[0].startswith("-") and "c" not in argv[0]:
        argv = argv[1:]
    if argv and argv[0].startswith("-"):
        call.shell.arguments = argv[2:]
        return (yield from _inner(call, argv[1] if len(argv) > 1 else "", call.io))
    script = call.machine.read(call.shell.path(argv[0])) if argv else call.io.stdin
    if script is None:
        return call.fail(f"can't open '{argv[0]}': No such file or directory", 2)
    return (yield from _inner(call, script, Io("", call.io.write)))


def _inner(call: Command, script: str, io: Io) -> Steps:
    """Run a script whose `exit` ends only itself."""
    code = yield from call.shell.run(script, io)
    call.shell.left = False
    return code


def run_rest(call: Command) -> Steps:
    """exec / nohup / time COMMAND, timeout N COMMAND, xargs COMMAND"""
    argv = call.argv[1:]
    if call.name == "timeout":
        argv = argv[1:]
    if call.name == "xargs":
        argv = [*argv, *call.io.stdin.split()]
    return (yield from call.shell.execute(argv, call.io))


def which(call: Command) -> int:
    """which / command -v NAME"""
    names = [item for item in call.argv[1:] if not item.startswith("-")]
    found = [name for name in names if name in call.shell.tools and call.machine.has(name)]
    for name in found:
        call.io.out(f"/usr/bin/{name}\n")
    return 0 if len(found) == len(names) else 1


def kill(call: Command) -> int:
    """kill PID: nothing that a container's supervisor would survive is modelled."""
    return call.fail("Operation not permitted")


def working_folder(call: Command) -> int:
    """pwd"""
    call.io.out(call.shell.cwd + "\n")
    return 0


def true(call: Command) -> int:
    """true, :"""
    return 0


def false(call: Command) -> int:
    """false"""
    return 1


BUILTINS: dict[str, Tool] = {
    "cd": change_folder,
    "export": assign,
    "set": assign,
    "unset": assign,
    "exit": leave,
    "exec": run_rest,
    "command": which,
    ":": true,
    "true": true,
    "false": false,
    "[": test,
    "[[": test,
    "trap": true,
    "test": test,
    "echo": echo,
    "printf": printf,
}
"""What every shell has, whatever the image."""

COREUTILS: dict[str, Tool] = {
    **TEXTS,
    **NUMBERS,
    "cat": cat,
    "cp": copy,
    "date": date,
    "df": df,
    "env": env,
    "free": free,
    "hostname": hostname,
    "id": identity,
    "kill": kill,
    "ls": ls,
    "mkdir": make,
    "mv": copy,
    "nohup": run_rest,
    "printenv": env,
    "ps": ps,
    "pwd": working_folder,
    "rm": rm,
    "sh": nested,
    "ash": nested,
    "bash": nested,
    "sleep": sleep,
    "tee": tee,
    "time": run_rest,
    "timeout": run_rest,
    "touch": make,
    "uname": uname,
    "which": which,
    "whoami": identity,
    "xargs": run_rest,
}
