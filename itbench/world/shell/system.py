"""Commands that look at the system: tty, nproc, mount, find, top, netstat, ss. The interpreter finds them in `SYSTEM`."""

from fnmatch import fnmatchcase

from itbench.world.shell.interpreter import Command, Tool


def tty(call: Command) -> int:
    """tty"""
    call.io.out("/dev/pts/0\n" if call.io.terminal else "not a tty\n")
    return 0 if call.io.terminal else 1


def nproc(call: Command) -> int:
    """nproc"""
    call.io.out(f"{(call.machine.read('/proc/cpuinfo') or '').count('processor') or 1}\n")
    return 0


def mount(call: Command) -> int:
    """mount"""
    if len(call.argv) > 1:
        return call.fail("permission denied (are you root?)")
    for line in (call.machine.read("/proc/mounts") or "").splitlines():
        device, path, kind, options = line.split()[:4]
        call.io.out(f"{device} on {path} type {kind} ({options})\n")
    return 0


def find(call: Command) -> int:
    """find [PATH...] [-name PATTERN] [-type f|d] [-maxdepth N]"""
    starts: list[str] = []
    words = call.argv[1:]
    while words and not words[0].startswith("-"):
        starts.append(words.pop(0))
    options = dict(zip(words[::2], words[1::2], strict=False))
    unknown = [word for word in words[::2] if word not in ("-name", "-iname", "-type", "-maxdepth", "-print")]
    if unknown:
        return call.fail(f"unrecognized: {unknown[0]}")
    code = 0
    for start in starts or ["."]:
        is_folder = call.machine.entries(call.shell.path(start)) is not None
        if not is_folder and call.machine.read(call.shell.path(start)) is None:
            code = call.fail(f"{start}: No such file or directory")
            continue
        _walk(call, start, options, 0, is_folder=is_folder)
    return code


def _walk(call: Command, path: str, options: dict[str, str], depth: int, *, is_folder: bool) -> None:
    name = path.rstrip("/").rsplit("/", 1)[-1] or path
    pattern, kind, most = options.get("-name", "*"), options.get("-type", ""), options.get("-maxdepth", "")
    loose = options.get("-iname", "*").lower()
    if fnmatchcase(name, pattern) and fnmatchcase(name.lower(), loose) and kind in ("", "d" if is_folder else "f"):
        call.io.out(f"{path}\n")
    if not is_folder or (most.isdigit() and depth >= int(most)):
        return
    for entry in sorted(call.machine.entries(call.shell.path(path)) or ()):
        if entry != ".keep":  # what makes the model remember an empty folder
            _walk(call, f"{path.rstrip('/')}/{entry.rstrip('/')}", options, depth + 1, is_folder=entry.endswith("/"))


def top(call: Command) -> int:
    """top -b [-n N]: one look"""
    used, total = call.machine.memory()
    call.io.out(f"Mem: {int(used * 1024)}K used, {int((total - used) * 1024)}K free, 0K shrd, 0K buff, 0K cached\n")
    call.io.out("  PID  PPID USER     STAT   VSZ %VSZ CPU %CPU COMMAND\n")
    for pid, user, command in call.machine.processes():
        size = used if pid == 1 else 1.6
        share = 100 * size / total if total else 0.0
        shown = "top -b" if pid != 1 else command
        call.io.out(f"{pid:>5}     0 {user:<8} S    {int(size * 1024):>5} {share:>3.0f}%   0   0% {shown}\n")
    return 0


def netstat(call: Command) -> int:
    """netstat -l[t][u][n]: what listens"""
    listening = any("l" in word or "a" in word for word in call.argv[1:] if word.startswith("-"))
    call.io.out(f"Active Internet connections ({'only servers' if listening else 'w/o servers'})\n")
    call.io.out("Proto Recv-Q Send-Q Local Address           Foreign Address         State       \n")
    for port, protocol in call.machine.ports() if listening else ():
        state = "LISTEN" if protocol == "tcp" else ""
        call.io.out(f"{protocol:<5}      0      0 {f'0.0.0.0:{port}':<23} {'0.0.0.0:*':<23} {state:<12}\n")
    return 0


def ss(call: Command) -> int:
    """ss -l[t][u][n]: what listens"""
    call.io.out("Netid State  Recv-Q Send-Q Local Address:Port  Peer Address:PortProcess\n")
    if any("l" in word or "a" in word for word in call.argv[1:] if word.startswith("-")):
        for port, protocol in call.machine.ports():
            state = "LISTEN" if protocol == "tcp" else "UNCONN"
            call.io.out(f"{protocol:<5} {state:<6} 0      4096   {f'0.0.0.0:{port}':>18} {'0.0.0.0:*':>17}\n")
    return 0


SYSTEM: dict[str, Tool] = {
    "find": find,
    "mount": mount,
    "netstat": netstat,
    "nproc": nproc,
    "ss": ss,
    "top": top,
    "tty": tty,
}
