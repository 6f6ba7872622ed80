"""Running exec commands and forwarded ports, as the API server's `Session`. Made by the door; they are never saved."""

from collections.abc import Callable
from math import inf

from itbench.kube.door import Request, Response
from itbench.world import archive
from itbench.world.process import TOOLS
from itbench.world.shell.input import SHELLS, reads_input
from itbench.world.shell.interpreter import Io, Shell, Steps
from itbench.world.shell.machine import Machine
from itbench.world.shell.network import REASONS
from itbench.world.shell.syntax import SyntaxFault, parse
from itbench.world.stores import items

NOT_FOUND = 127


class ExecSession:
    """One command in a container.

    Args:
        machine: the container.
        argv: the command.
        stdin: whether the client sends standard input.
        tty: whether it is a terminal.
    """

    def __init__(self, machine: Machine, argv: list[str], *, stdin: bool, tty: bool) -> None:
        self.exit_code: int | None = None
        self.due = inf
        self._machine, self._argv, self._tty = machine, argv, tty
        self._out: list[tuple[int, bytes]] = []
        self._input = ""
        self._steps: Steps | None = None
        self._shell = Shell(machine, TOOLS, cwd=machine.workdir)
        name = argv[0].rsplit("/", 1)[-1]
        self._console = (
            stdin and name in SHELLS and not any(a.startswith("-c") or not a.startswith("-") for a in argv[1:])
        )
        self._waiting = stdin and not self._console and reads_input(argv)
        self._archive: bytes | None = None
        if name == "tar" and machine.has("cat"):
            self._tar()
        elif name not in TOOLS or not machine.has(argv[0]):
            self._refuse()
        elif self._console:
            self._prompt()
        elif not self._waiting:
            self._begin("")

    def _refuse(self) -> None:
        """What a runtime says about a command that the image lacks."""
        command = self._argv[0]
        why = f"stat {command}: no such file or directory" if "/" in command else "executable file not found in $PATH"
        text = f'OCI runtime exec failed: exec failed: unable to start container process: exec: "{command}": {why}: unknown\n'
        self._write(2, text)
        self.exit_code = NOT_FOUND

    def _tar(self) -> None:
        """`kubectl cp`: pack at once, or collect what the client sends."""
        mode, paths, folder = archive.read_options(self._argv)
        if mode == "x":
            self._archive = b""
            return
        data, errors = (
            archive.pack(self._machine, paths, folder) if mode else (b"", "tar: You must specify one of 'cx'\n")
        )
        self._out.append((1, data))
        self._write(2, errors)
        self.exit_code = 2 if errors else 0

    def _write(self, fd: int, text: str) -> None:
        if self._tty:
            text, fd = text.replace("\n", "\r\n"), 1
        if text:
            self._out.append((fd, text.encode()))

    def _begin(self, text: str) -> None:
        self._steps = self._shell.execute(self._argv, Io(text, self._write, self._tty))
        self._go()

    def _go(self) -> None:
        """Run until the command ends or sleeps."""
        assert self._steps is not None
        while True:
            try:
                pause = next(self._steps)
            except StopIteration as end:
                self._steps, self.due = None, inf
                self._finish(int(end.value))
                return
            if pause > 0:
                self.due = self._machine.now() + pause
                return

    def _finish(self, code: int) -> None:
        if self._console and not self._shell.left:
            self._prompt()
            self._next_line()
        else:
            self.exit_code = code

    def _prompt(self) -> None:
        if self._tty:
            self._write(1, f"{self._shell.cwd} # ")

    def _next_line(self) -> None:
        """Run the next complete line of a console."""
        if self._steps is not None or "\n" not in self._input or self.exit_code is not None:
            return
        line, self._input = self._input.split("\n", 1)
        words = line.split()
        if words[:1] in (["exit"], ["logout"]):
            self.exit_code = int(words[1]) if len(words) > 1 and words[1].isdigit() else self._shell.code
            return
        try:
            parse(line)
        except SyntaxFault as error:
            self._write(2, f"sh: {error}\n")
            self._finish(2)
            return
        self._steps = self._shell.run(line, Io("", self._write, self._tty))
        self._go()

    def write(self, data: bytes) -> None:
        """Standard input."""
        if self._archive is not None:
            self._archive += data
            return
        text = data.decode("utf-8", "replace")
        if self._tty and self._console:
            text = text.replace("\r", "\n")
            self._write(1, text)
            if "\x03" in text or "\x04" in text:
                self.exit_code = 130 if "\x03" in text else self._shell.code
                return
        self._input += text
        if self._console:
            self._next_line()

    def close(self) -> None:
        """End of input."""
        if self._archive is not None:
            errors = archive.unpack(self._machine, self._archive, archive.read_options(self._argv)[2])
            self._write(2, errors)
            self.exit_code, self._archive = 2 if errors else 0, None
        elif self._console and self._steps is None and self.exit_code is None:
            if self._input:
                self._input += "\n"
                self._next_line()
            if self._steps is None and self.exit_code is None:
                self.exit_code = self._shell.code
        elif self._waiting:
            self._waiting = False
            self._begin(self._input)

    def read(self) -> list[tuple[int, bytes]]:
        """Frames since the last call; goes on with a command whose sleep is over."""
        if self._steps is not None and self.due <= self._machine.now():
            self._go()
        found, self._out = self._out, []
        return found


class ForwardSession:
    """One forwarded connection to a port of a pod: speaks HTTP/1.1, and a Redis-like store's inline and RESP requests."""

    def __init__(
        self, ask: Callable[[Request], Response | None], redis: Callable[[list[str]], str | None], *, is_redis: bool
    ) -> None:
        self.exit_code: int | None = None
        self.due = inf
        self._ask, self._redis, self._is_redis = ask, redis, is_redis
        self._input = b""
        self._out: list[tuple[int, bytes]] = []

    def write(self, data: bytes) -> None:
        """Bytes from the client."""
        self._input += data
        if self._is_redis:
            self._serve_redis()
        else:
            while self._serve_http():
                continue

    def _serve_http(self) -> bool:
        head, mark, rest = self._input.partition(b"\r\n\r\n")
        if not mark:
            return False
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        size = int(headers.get("content-length") or 0)
        if len(words) != 3 or len(rest) < size:
            self.exit_code = 0 if len(words) != 3 else None
            return False
        self._input = rest[size:]
        response = self._ask(Request(words[0], words[1], headers, rest[:size]))
        if response is None:
            self.exit_code = 0
            return False
        fields = {"Content-Length": str(len(response.body)), **response.headers}
        text = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        status = f"HTTP/1.1 {response.status} {REASONS.get(response.status, 'Unknown')}\r\n{text}\r\n"
        body = b"" if words[0] == "HEAD" else response.body
        self._out.append((1, status.encode() + body))
        if headers.get("connection", "").lower() == "close":
            self.exit_code = 0
        return True

    def _serve_redis(self) -> None:
        while b"\r\n" in self._input:
            argv, used = _redis_request(self._input)
            if not used:
                return
            self._input = self._input[used:]
            if argv:
                self._out.append((1, _resp(self._redis(argv) or "")))

    def close(self) -> None:
        """The client is done."""
        self.exit_code = self.exit_code or 0

    def read(self) -> list[tuple[int, bytes]]:
        """Bytes for the client."""
        found, self._out = self._out, []
        return found


def _redis_request(data: bytes) -> tuple[list[str], int]:
    """(argv, bytes used) of one request; (…, 0) when it is not complete."""
    line, _, rest = data.partition(b"\r\n")
    if not line.startswith(b"*"):
        return line.decode("utf-8", "replace").split(), len(line) + 2
    argv, at = [], len(line) + 2
    for _ in range(int(line[1:] or 0)):
        head, mark, rest = data[at:].partition(b"\r\n")
        size = int(head[1:] or 0)
        if not mark or len(rest) < size + 2:
            return [], 0
        argv.append(rest[:size].decode("utf-8", "replace"))
        at += len(head) + 2 + size + 2
    return argv, at


def _resp(reply: str) -> bytes:
    rows = items(reply)
    if rows is not None:
        return f"*{len(rows)}\r\n".encode() + b"".join(_resp(f'"{row}"') for row in rows)
    if reply.startswith("(integer) "):
        return f":{reply[10:]}\r\n".encode()
    if reply == "(nil)":
        return b"$-1\r\n"
    if reply.startswith("(error) "):
        return f"-{reply[8:]}\r\n".encode()
    if reply in ("OK", "PONG"):
        return f"+{reply}\r\n".encode()
    text = reply.strip('"').encode()
    return b"$" + str(len(text)).encode() + b"\r\n" + text + b"\r\n"
