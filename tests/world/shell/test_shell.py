"""The shell inside modelled containers: what scripts print, how they end, how long they sleep."""

from dataclasses import dataclass, field

import pytest

from itbench.kube.door import Request, Response
from itbench.world.shell.coreutils import BUILTINS, COREUTILS
from itbench.world.shell.interpreter import Io, Shell
from itbench.world.shell.network import NETWORK
from itbench.world.shell.system import SYSTEM


@dataclass
class Box:
    """A machine without a world behind it."""

    files: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=lambda: {"HOME": "/root", "NAME": "two words"})
    answers: dict[tuple[str, int], str] = field(default_factory=dict)
    hostname: str = "web-1"
    user: str = "root"
    workdir: str = "/"
    clock: float = 0.0

    def now(self) -> float:
        return self.clock

    def calendar(self) -> float:
        return self.clock + 3600.0

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def write(self, path: str, text: str) -> str:
        if path.startswith("/ro/"):
            return "Read-only file system"
        self.files[path] = text
        return ""

    def remove(self, path: str) -> bool:
        return self.files.pop(path, None) is not None

    def entries(self, path: str) -> list[str] | None:
        prefix = path.rstrip("/") + "/"
        names = {
            p[len(prefix) :].split("/")[0] + ("/" if "/" in p[len(prefix) :] else "")
            for p in self.files
            if p.startswith(prefix)
        }
        return sorted(names) or None

    def modified(self, path: str) -> float:
        return 86400.0 if path.startswith("/old") else self.clock

    def ports(self) -> list[tuple[int, str]]:
        return [(53, "udp"), (8080, "tcp")]

    def processes(self) -> list[tuple[int, str, str]]:
        return [(1, "root", "/app/server")]

    def memory(self) -> tuple[float, float]:
        return 10.0, 100.0

    def has(self, command: str) -> bool:
        return command != "telnet"

    def resolve(self, host: str) -> list[str]:
        return ["10.0.0.7"] if host == "web" else []

    def dial(self, host: str, port: int) -> str:
        return self.answers.get((host, port), "nxdomain")

    def http(self, host: str, port: int, request: Request) -> tuple[Response | None, str]:
        verdict = self.dial(host, port)
        if verdict != "ok":
            return None, verdict
        return Response(
            404 if request.path == "/missing" else 200, {}, f"{request.method} {request.path}".encode() + request.body
        ), "ok"

    def redis(self, host: str, port: int, argv: list[str]) -> tuple[str | None, str]:
        return ("PONG", "") if argv == ["PING"] else (None, "refused")


def run(script: str, box: Box | None = None) -> tuple[int, str, str, float]:
    """Exit code, standard output, standard error, seconds slept."""
    box = box or Box()
    out: list[tuple[int, str]] = []
    shell = Shell(box, {**BUILTINS, **COREUTILS, **SYSTEM, **NETWORK})
    steps = shell.run(script, Io("", lambda fd, text: out.append((fd, text))))
    slept = 0.0
    while True:
        try:
            pause = next(steps)
        except StopIteration as end:
            return end.value, "".join(t for fd, t in out if fd == 1), "".join(t for fd, t in out if fd == 2), slept
        slept += pause
        box.clock += pause
        if slept > 100:
            return -1, "".join(t for fd, t in out if fd == 1), "", slept


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo hello world", "hello world\n"),
        ("echo -n 'a  b'", "a  b"),
        ('echo "$NAME" $NAME', "two words two words\n"),
        ("X=1; echo ${X}${Y:-2}", "12\n"),
        ("printf '%s=%d\\n' a 1 b 2", "a=1\nb=2\n"),
        ("echo b > /tmp/f; echo a >> /tmp/f; sort /tmp/f", "a\nb\n"),
        ("printf 'x\\ny\\nx\\n' | grep x | wc -l", "2\n"),
        ("echo one | sed s/one/two/", "two\n"),
        ("for i in a b; do echo $i; done", "a\nb\n"),
        ("if [ -f /none ]; then echo yes; else echo no; fi", "no\n"),
        ("false || echo or; true && echo and", "or\nand\n"),
        ("echo $(echo inner) `echo tick`", "inner tick\n"),
        ("(echo a; echo b) | tail -n 1", "b\n"),
        ("! false && echo negated", "negated\n"),
        ("missing-command 2>/dev/null; echo $?", "127\n"),
        ("cat /none 2>&1 | grep -c open", "1\n"),
        ("mkdir -p /d; touch /d/a.txt /d/b.txt; ls /d/*.txt", "/d/a.txt\n/d/b.txt\n"),
        ("sh -c 'echo $0 $1' zero one", "zero one\n"),
        ("# comment\necho a # b\n", "a\n"),
        ("echo a; exit 3; echo b", "a\n"),
        ("echo a | exit 3; echo $?", "3\n"),
        ("sh -c 'exit 3'; echo $?", "3\n"),
        ("echo 'exit 5' | sh; echo $?", "5\n"),
        ("I=7; if [ $(expr ${I} % 2) -ne 0 ]; then echo odd; fi", "odd\n"),
        ("i=0; while [ $i -lt 3 ]; do i=$((i+1)); echo $i; done", "1\n2\n3\n"),
        ("seq 2 2 6; echo $(( (2+3)*-4 % 7 )) $((1<2 && 0))", "2\n4\n6\n-6 0\n"),
        ("if [[ -r /none ]]; then echo no; else touch /f; [[ -r /f ]] && echo yes; fi", "yes\n"),
        ("[ $RANDOM -lt 32768 ] && [ $RANDOM != $RANDOM ] && echo drawn", "drawn\n"),
        ("expr length abc; expr 0; echo $?; expr abc : 'a\\(.*\\)'", "3\n0\n1\nbc\n"),
    ],
)
def test_scripts_print_what_a_shell_prints(script: str, expected: str) -> None:
    assert run(script)[1] == expected


def test_the_exit_code_is_that_of_the_last_command() -> None:
    assert run("exit 3")[0] == 3
    assert run("cat /none")[0] == 1
    assert run("telnet x")[0] == 127


def test_a_syntax_error_is_told_and_ends_with_two() -> None:
    code, _, error, _ = run("if true; then echo")
    assert code == 2
    assert "syntax error" in error


def test_waiting_loops_sleep_until_the_server_answers() -> None:
    code, out, _, slept = run("until nc -z web 80; do echo waiting; sleep 2; done; echo ready")
    assert (code, slept > 100) == (-1, True)
    assert out.startswith("waiting\nwaiting\n")
    assert run("until nc -z web 80; do sleep 2; done; echo ready", Box(answers={("web", 80): "ok"}))[1] == "ready\n"


def test_curl_reports_each_kind_of_failure_with_its_own_code() -> None:
    box = Box(answers={("web", 80): "ok", ("shut", 80): "refused", ("slow", 80): "timeout"})
    assert run("curl -s web/path", box)[:2] == (0, "GET /path")
    assert run("curl -s -o /dev/null -w '%{http_code}' http://web/missing", box)[:2] == (0, "404")
    assert run("curl -fsS http://web/missing", box)[0] == 22
    assert run("curl http://nowhere/", box)[0] == 6
    assert run("curl http://shut/", box)[0] == 7
    assert run("curl -m 3 http://slow/", box)[::3] == (28, 3.0)
    assert run("curl -s -X POST -d '{}' http://web/api", box)[1] == "POST /api{}"


def test_writes_to_read_only_places_fail_with_the_kernel_text() -> None:
    code, _, error, _ = run("echo a > /ro/file")
    assert code == 1
    assert "Read-only file system" in error


def test_redis_cli_tells_when_nobody_listens() -> None:
    assert run("valkey-cli ping | cat; redis-cli PING")[1] == "PONG\n"
    assert "Could not connect to Valkey at 127.0.0.1:6379: Connection refused" in run("valkey-cli GET a")[2]


def test_an_endless_loop_is_stopped() -> None:
    assert run("while true; do :; done")[0] == 137


def test_the_date_is_that_of_the_clients_calendar() -> None:
    """An engineer who asks a container for the date sees the date of the cluster's objects."""
    code, out, _, _ = run("date +%H:%M:%S")
    assert (code, out) == (0, "09:00:00\n")


@pytest.mark.parametrize(
    ("verdict", "curl", "wget"),
    [
        (
            "refused",
            (7, "Failed to connect to web port 80"),
            "can't connect to remote host (10.0.0.7): Connection refused",
        ),
        ("reset", (56, "Recv failure: Connection reset by peer"), "error getting response: Connection reset by peer"),
        ("http2", (1, "Received HTTP/0.9 when not allowed"), "error getting response: Connection reset by peer"),
        ("empty", (52, "Empty reply from server"), "error getting response"),
        ("timeout", (28, "Connection timed out after"), "download timed out"),
    ],
)
def test_each_way_to_get_no_answer_has_its_own_words(verdict: str, curl: tuple[int, str], wget: str) -> None:
    box = Box(answers={("web", 80): verdict})
    code, _, said, _ = run("curl -m 5 http://web/", box)
    assert code == curl[0]
    assert f"curl: ({curl[0]}) {curl[1]}" in said
    code, _, said, _ = run("wget -q -T 5 -O- http://web/", box)
    assert (code, said) == (1, f"wget: {wget}\n")


def test_wget_shows_headers_when_asked() -> None:
    box = Box(answers={("web", 80): "ok"})
    _, out, said, _ = run("wget -S -O - http://web/x", box)
    assert out == "GET /x"
    lines = said.splitlines()
    assert lines[:3] == ["Connecting to web:80 (10.0.0.7:80)", "  HTTP/1.1 200 OK", "  Content-Length: 6"]
    assert run("wget -qO- http://web/x", box)[2] == ""


FILES = {"/srv/a.txt": "12", "/srv/.hidden": "", "/srv/sub/b.log": "", "/old.txt": ""}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("cd /srv; ls", "a.txt\nsub\n"),
        ("cd /srv; ls -a", ".\n..\n.hidden\na.txt\nsub\n"),
        ("mkdir /srv/new; ls -a /srv/new", ".\n..\n"),
        ("find /srv -name '*.*'", "/srv/.hidden\n/srv/a.txt\n/srv/sub/b.log\n"),
        ("cd /srv; find . -type d", ".\n./sub\n"),
        ("find /srv -maxdepth 1 -type f", "/srv/.hidden\n/srv/a.txt\n"),
        ("netstat -tln | grep -c LISTEN; netstat -tn | grep -c LISTEN", "1\n0\n"),
        ("ss -lntu | grep -o '0.0.0.0:[0-9][0-9]*'", "0.0.0.0:53\n0.0.0.0:8080\n"),
        ("top -b -n1 | grep -c /app/server", "1\n"),
        ("tty", "not a tty\n"),
        ("tty; echo $?; find /none; echo $?", "not a tty\n1\n1\n"),
    ],
)
def test_folders_and_the_system_can_be_looked_at(script: str, expected: str) -> None:
    assert run(script, Box(files=dict(FILES)))[1] == expected


def test_a_long_listing_has_a_total_both_dots_and_the_files_own_dates() -> None:
    out = run("ls -la /srv", Box(files=dict(FILES)))[1].splitlines()
    assert out[0] == "total 20"
    assert [line.split()[-1] for line in out[1:]] == [".", "..", ".hidden", "a.txt", "sub"]
    assert {line.split()[5] + line.split()[6] for line in out[1:]} == {"Jan12"}
    late = Box(files=dict(FILES), clock=400 * 86400.0)
    assert run("ls -l /old.txt", late)[1].split()[5:8] == ["Jan", "13", "2026"]
