"""Runs parsed scripts on a `Machine`. Everything is a generator that yields how many seconds it wants to sleep.

Called by exec sessions (which hand the sleeping to the client) and by containers whose process is a script.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from posixpath import join, normpath

from itbench.core.ids import digest
from itbench.world.shell.machine import Machine
from itbench.world.shell.sums import BadSum, calculate
from itbench.world.shell.syntax import Node, Piece, Redirect, SyntaxFault, Word, parse

Steps = Generator[float, None, int]
MAX_TURNS = 10_000
"""Turns of one loop without sleeping after which a script counts as endless."""
MAX_TEXT = 1 << 20
"""Characters of one value, file or piped text; a process that wants more is killed as one that ran out of memory."""
BURST = 5_000
"""Commands after which a script has used some time, so that others get their turn."""
BURST_S = 0.05
CARRIED = 256
"""Characters whose handling takes as long as a command."""
KILLED = 137


class Exit(Exception):
    """`exit N` was called."""

    def __init__(self, code: int) -> None:
        self.code = code


class Killed(Exception):
    """The process wanted more memory than there is; its subshells and pipelines go with it."""


@dataclass(slots=True)
class Io:
    """Standard streams of one command: input text, where output goes as (fd, text), and whether that is a terminal."""

    stdin: str
    write: Callable[[int, str], None]
    terminal: bool = False

    def out(self, text: str) -> None:
        """Standard output."""
        self.write(1, text)

    def err(self, text: str) -> None:
        """Standard error."""
        self.write(2, text)


@dataclass(slots=True)
class Command:
    """One call of a command."""

    shell: "Shell"
    argv: list[str]
    io: Io

    @property
    def name(self) -> str:
        """The command as typed."""
        return self.argv[0]

    @property
    def machine(self) -> Machine:
        """The container."""
        return self.shell.machine

    def fail(self, text: str, code: int = 1) -> int:
        """Print `name: text` on standard error."""
        self.io.err(f"{self.name}: {text}\n")
        return code


Tool = Callable[[Command], "int | Steps"]


@dataclass
class Shell:
    """One shell process: variables, working directory, last exit code."""

    machine: Machine
    tools: dict[str, Tool]
    variables: dict[str, str] = field(default_factory=dict)
    cwd: str = "/"
    code: int = 0
    arguments: list[str] = field(default_factory=list)
    looping: int = 0
    spent: int = 0
    """Commands since others had their turn, and what they carried about counts too."""
    draws: int = 0
    """How often `$RANDOM` was asked."""
    left: bool = False
    """The script that ran last ended with `exit`."""

    def path(self, text: str) -> str:
        """An absolute, normal path."""
        return normpath(join(self.cwd, text)) if not text.startswith("/") else normpath(text)

    def run(self, script: str, io: Io) -> Steps:
        """Run a script to its end; the value is the exit code."""
        try:
            return (yield from self._script(script, io))
        except Killed:
            return KILLED

    def _script(self, script: str, io: Io) -> Steps:
        try:
            tree = parse(script)
        except SyntaxFault as error:
            io.err(f"sh: {error}\n")
            return 2
        except RecursionError:
            io.err("sh: out of stack space\n")
            return 2
        self.left = False
        try:
            return (yield from self._node(tree, io))
        except Exit as stop:
            self.left, self.code = True, stop.code
            return stop.code

    def execute(self, argv: list[str], io: Io) -> Steps:
        """Run one command without shell syntax."""
        try:
            return (yield from self._call(argv, io))
        except Exit as stop:
            return stop.code
        except Killed:
            return KILLED

    def _held(self, text: str) -> str:
        """A text that the process holds in memory."""
        if len(text) > MAX_TEXT:
            raise Killed
        self.spent += len(text) // CARRIED
        return text

    def _node(self, node: Node, io: Io) -> Steps:
        self.spent += 1
        if self.spent > BURST:
            self.spent = 0
            yield BURST_S
        handler = getattr(self, f"_do_{node.kind}")
        self.code = yield from handler(node, io)
        return self.code

    def _do_list(self, node: Node, io: Io) -> Steps:
        code = 0
        for part in node.parts:
            code = yield from self._node(part, io)
        return code

    def _do_background(self, node: Node, io: Io) -> Steps:
        yield from self._node(node.parts[0], io)
        return 0

    def _do_not(self, node: Node, io: Io) -> Steps:
        code = yield from self._node(node.parts[0], io)
        return 0 if code else 1

    def _do_and(self, node: Node, io: Io) -> Steps:
        code = yield from self._node(node.parts[0], io)
        return (yield from self._node(node.parts[1], io)) if code == 0 else code

    def _do_or(self, node: Node, io: Io) -> Steps:
        code = yield from self._node(node.parts[0], io)
        return (yield from self._node(node.parts[1], io)) if code != 0 else code

    def _do_if(self, node: Node, io: Io) -> Steps:
        code = yield from self._node(node.parts[0], io)
        if code == 0:
            return (yield from self._node(node.parts[1], io))
        return (yield from self._node(node.parts[2], io)) if len(node.parts) > 2 else 0

    def _do_while(self, node: Node, io: Io, *, want: bool = True) -> Steps:
        code, self.looping = 0, self.looping + 1
        try:
            for _ in range(MAX_TURNS):
                if ((yield from self._node(node.parts[0], io)) == 0) is not want:
                    return code
                code = yield from self._node(node.parts[1], io)
        finally:
            self.looping -= 1
        # A loop that never sleeps would burn a core for ever; time passes so that others can go on.
        yield 1.0
        return KILLED

    def _do_until(self, node: Node, io: Io) -> Steps:
        return (yield from self._do_while(node, io, want=False))

    def _do_for(self, node: Node, io: Io) -> Steps:
        code = 0
        for value in (yield from self._expand_all(node.words, io)):
            self.variables[node.name] = value
            code = yield from self._node(node.parts[0], io)
        return code

    def _do_group(self, node: Node, io: Io) -> Steps:
        if not node.redirects:
            return (yield from self._node(node.parts[0], io))
        return (yield from self._redirected(node.redirects, io, lambda inner: self._node(node.parts[0], inner)))

    def _do_pipe(self, node: Node, io: Io) -> Steps:
        text, code = io.stdin, 0
        for index, part in enumerate(node.parts):
            last = index == len(node.parts) - 1
            caught: list[str] = []
            inner = io.write if last else _catcher(caught, io.write)
            try:
                code = yield from self._node(part, Io(text, inner, last and io.terminal))
            except Exit as stop:  # a part of a pipeline is a shell of its own
                code = stop.code
            text = "".join(caught)
        return code

    def _do_simple(self, node: Node, io: Io) -> Steps:
        for name, word in node.assigns:
            values = yield from self._expand(word, io, split=False)
            self.variables[name] = "".join(values)
        argv = yield from self._expand_all(node.words, io)
        if not argv and not node.redirects:
            return 0
        return (yield from self._redirected(node.redirects, io, lambda inner: self._call(argv, inner)))

    def _redirected(self, redirects: tuple[Redirect, ...], io: Io, body: Callable[[Io], Steps]) -> Steps:
        stdin, targets, files = io.stdin, {1: "&1", 2: "&2"}, {}
        for redirect in redirects:
            if redirect.op == "2>&1":
                targets[2] = targets[1]
                continue
            if redirect.op == "1>&2":
                targets[1] = targets[2]
                continue
            assert redirect.target is not None
            path = self.path("".join((yield from self._expand(redirect.target, io, split=False))))
            if redirect.op == "<":
                text = self.machine.read(path)
                if text is None:
                    io.err(f"sh: can't open '{path}': no such file\n")
                    return 1
                stdin = text
                continue
            append = redirect.op.endswith(">>")
            files[path] = (self.machine.read(path) or "") if append else ""
            for fd in (1, 2) if redirect.op == "&>" else (2,) if redirect.op.startswith("2") else (1,):
                targets[fd] = path

        def write(fd: int, text: str) -> None:
            where = targets[fd]
            if where in ("&1", "&2"):
                io.write(int(where[1]), text)
            else:
                files[where] = self._held(files[where] + text)

        code = yield from body(Io(stdin, write, io.terminal and targets[1] == "&1"))
        for path, text in files.items():
            error = "" if path == "/dev/null" else self.machine.write(path, text)
            if error:
                io.err(f"sh: can't create {path}: {error}\n")
                code = 1
        return code

    def _call(self, argv: list[str], io: Io) -> Steps:
        if not argv:
            return 0
        name = argv[0].rsplit("/", 1)[-1] if argv[0].startswith("/") else argv[0]
        tool = self.tools.get(name)
        if tool is None or not self.machine.has(argv[0]):
            io.err(f"sh: {argv[0]}: not found\n")
            return 127
        result = tool(Command(self, argv, io))
        if isinstance(result, int):
            return result
        return (yield from result)

    def _expand_all(self, words: tuple[Word, ...], io: Io) -> Generator[float, None, list[str]]:
        found: list[str] = []
        for word in words:
            found += yield from self._expand(word, io)
        return found

    def _expand(self, word: Word, io: Io, *, split: bool = True) -> Generator[float, None, list[str]]:
        fields: list[str] = [""]
        seen = pattern = False
        for piece in word.pieces:
            text = yield from self._value(piece, io)
            if piece.quoted or piece.kind == "text" or not split:
                fields[-1] = self._held(fields[-1] + text)
                seen = seen or piece.quoted or bool(text)
                pattern = pattern or (not piece.quoted and piece.kind == "text" and any(c in text for c in "*?["))
                continue
            parts = text.split()
            if parts:
                fields[-1] += parts[0]
                fields += parts[1:]
                seen = True
        if not seen and fields == [""]:
            return []
        return self._glob(fields[0]) if pattern and split and len(fields) == 1 else fields

    def _glob(self, text: str) -> list[str]:
        folder, slash, last = text.rpartition("/")
        names = self.machine.entries(self.path(folder or ("/" if slash else ".")))
        hits = [name.rstrip("/") for name in names or () if fnmatchcase(name.rstrip("/"), last) and name[0] != "."]
        return [folder + slash + name for name in sorted(hits)] or [text]

    def _value(self, piece: Piece, io: Io) -> Generator[float, None, str]:
        if piece.kind == "text":
            return piece.text
        if piece.kind == "command":
            caught: list[str] = []
            yield from self._script(piece.text, Io("", _catcher(caught, io.write)))
            return self._held("".join(caught)).rstrip("\n")
        if piece.kind == "sum":
            return self._sum(piece.text, io)
        if piece.text == "?":
            return str(self.code)
        if piece.text == "$":
            return "1"
        if piece.text == "#":
            return str(max(len(self.arguments) - 1, 0))
        if piece.text in ("@", "*"):
            return " ".join(self.arguments[1:])
        if piece.text.isdigit():
            index = int(piece.text)
            return self.arguments[index] if index < len(self.arguments) else ""
        value = self._variable(piece.text)
        return value or (piece.default or "") if piece.default is not None else value

    def _variable(self, name: str) -> str:
        known = self.variables.get(name, self.machine.env.get(name))
        if known is None and name == "RANDOM":
            self.draws += 1
            return str(int.from_bytes(digest("RANDOM", self.machine.hostname, self.machine.now(), self.draws)[:2]) >> 1)
        return known or ""

    def _sum(self, text: str, io: Io) -> str:
        try:
            return str(calculate(text, self._variable))
        except (BadSum, RecursionError) as error:
            io.err(f"sh: {error if isinstance(error, BadSum) else 'arithmetic syntax error'}\n")
            self.code = 2
            return ""


def _catcher(caught: list[str], write: Callable[[int, str], None]) -> Callable[[int, str], None]:
    held = 0

    def inner(fd: int, text: str) -> None:
        nonlocal held
        if fd == 1:
            held += len(text)
            if held > MAX_TEXT:
                raise Killed
            caught.append(text)
        else:
            write(fd, text)

    return inner
