"""The kubelets' doors: logs, exec, forwarded ports and metrics, with the texts of a real kubelet."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from itbench.kube.client import ApiError, Client
from itbench.kube.door import LogQuery, NodeDoor, Request, Session
from itbench.world.estate import World

Pods = Callable[[Client, str], list[dict[str, Any]]]
Measure = Callable[[World, float], float]


def name_of(pods: Pods, kubectl: Client, app: str) -> str:
    """Name of the first pod of an app."""
    return str(pods(kubectl, app)[0]["metadata"]["name"])


def finish(world: World, session: Session, limit: float = 60.0) -> tuple[int | None, str, str]:
    """Let world time pass until a session ends: (exit code, stdout, stderr)."""
    frames = session.read()
    end = world.now + limit
    while session.exit_code is None and world.now < end:
        world.advance(min(max(session.due, world.now + 0.1), end))
        frames += session.read()
    return session.exit_code, *("".join(data.decode() for fd, data in frames if fd == wanted) for wanted in (1, 2))


def test_the_world_is_a_node_door(world: World) -> None:
    door: NodeDoor = world.door()
    assert door.node_metrics()


def test_logs_begin_with_the_start_and_keep_the_apps_own_format(world: World, kubectl: Client, pods: Pods) -> None:
    world.advance(world.now + 120)
    lines = world.door().logs(LogQuery("toy", name_of(pods, kubectl, "web"), "web"))
    assert len(lines) >= 5
    assert [at for at, _ in lines] == sorted(at for at, _ in lines)
    assert all(text.startswith("2026-01-12T") and text.endswith(" INFO tick") for _, text in lines)
    assert lines == world.door().logs(LogQuery("toy", name_of(pods, kubectl, "web"), "web"))


def test_a_tail_is_the_end_of_the_whole_log(world: World, kubectl: Client, pods: Pods) -> None:
    world.advance(world.now + 300)
    name = name_of(pods, kubectl, "web")
    whole = world.door().logs(LogQuery("toy", name, "web"))
    assert world.door().logs(LogQuery("toy", name, "web", tail=3)) == whole[-3:]
    assert world.door().logs(LogQuery("toy", name, "web", since=world.now - 60)) == [
        x for x in whole if x[0] >= world.now - 60
    ]


def test_lines_that_were_not_there_are_never_older_than_those_that_were(
    world: World, kubectl: Client, pods: Pods
) -> None:
    kubectl.patch("services", "api", "toy", {"spec": {"selector": {"version": "v2"}}})
    query = LogQuery("toy", name_of(pods, kubectl, "web"), "web")
    seen: list[tuple[float, str]] = []
    for _ in range(60):
        world.advance(world.now + 0.7)
        lines = world.door().logs(query)
        assert lines[: len(seen)] == seen
        seen = lines
    assert any("connection refused" in text for _, text in seen)


def test_logs_of_what_does_not_exist_fail_with_the_real_texts(world: World, kubectl: Client, pods: Pods) -> None:
    name = name_of(pods, kubectl, "web")
    with pytest.raises(ApiError, match='pods "nope" not found'):
        world.door().logs(LogQuery("toy", "nope", "web"))
    with pytest.raises(ApiError, match=f"container nope is not valid for pod {name}"):
        world.door().logs(LogQuery("toy", name, "nope"))
    with pytest.raises(ApiError, match=f'previous terminated container "web" in pod "{name}" not found'):
        world.door().logs(LogQuery("toy", name, "web", previous=True))


def test_the_previous_log_holds_the_last_words(world: World, kubectl: Client) -> None:
    body = {"containers": [{"name": "main", "image": "example.com/api:1.0"}]}
    kubectl.create(
        "pods",
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "crash", "namespace": "toy"}, "spec": body},
        "toy",
    )
    world.advance(world.now + 20)
    lines = world.door().logs(LogQuery("toy", "crash", "main"))
    assert lines[-1][1].endswith("ERROR environment variable MODE not set")


def test_exec_runs_a_command_in_the_containers_environment(world: World, kubectl: Client, pods: Pods) -> None:
    name = name_of(pods, kubectl, "web")
    code, out, _ = finish(world, world.door().exec("toy", name, "web", ["sh", "-c", "echo $API_ADDR; hostname"]))
    assert (code, out) == (0, f"api:9000\n{name}\n")


def test_exec_sees_the_mounted_files_and_the_network(world: World, kubectl: Client, pods: Pods) -> None:
    name = name_of(pods, kubectl, "flagd")
    code, out, _ = finish(world, world.door().exec("toy", name, "flagd", ["cat", "/etc/flagd/flags.json"]))
    assert code == 0
    assert json.loads(out)["flags"]["apiFailure"]["defaultVariant"] == "off"
    code, _, error = finish(world, world.door().exec("toy", name, "flagd", ["nc", "-zv", "api", "9000"]))
    assert code == 0
    assert error.endswith("open\n")


def test_exec_sleeps_in_world_time(world: World, kubectl: Client, pods: Pods) -> None:
    start = world.now
    code, out, _ = finish(
        world, world.door().exec("toy", name_of(pods, kubectl, "web"), "web", ["sh", "-c", "sleep 7; echo done"])
    )
    assert (code, out) == (0, "done\n")
    assert world.now - start == pytest.approx(7, abs=1)


def test_a_missing_command_answers_as_the_runtime_does(world: World, kubectl: Client, pods: Pods) -> None:
    code, _, error = finish(world, world.door().exec("toy", name_of(pods, kubectl, "web"), "web", ["strace"]))
    assert code == 127
    assert 'exec: "strace": executable file not found in $PATH' in error


def test_an_interactive_shell_answers_line_by_line(world: World, kubectl: Client, pods: Pods) -> None:
    session = world.door().exec("toy", name_of(pods, kubectl, "web"), "web", ["sh"], stdin=True)
    session.write(b"X=3; echo $X\n")
    assert session.read() == [(1, b"3\n")]
    session.write(b"exit 4\n")
    assert finish(world, session)[0] == 4


@pytest.mark.parametrize(
    ("script", "code"), [("true; exit 4", 4), ("if true; then exit 5; fi", 5), ("sh -c 'exit 3'\ntrue", 0)]
)
def test_a_shell_that_reads_its_script_ends_where_the_script_says(
    world: World, kubectl: Client, pods: Pods, script: str, code: int
) -> None:
    session = world.door().exec("toy", name_of(pods, kubectl, "web"), "web", ["sh"], stdin=True)
    session.write(script.encode() + b"\nfalse\n" if code else script.encode() + b"\n")
    session.close()
    assert finish(world, session)[0] == code


def test_standard_input_reaches_the_command(world: World, kubectl: Client, pods: Pods) -> None:
    session = world.door().exec("toy", name_of(pods, kubectl, "web"), "web", ["tee", "/tmp/x"], stdin=True)
    session.write(b"hello\n")
    session.close()
    assert finish(world, session)[:2] == (0, "hello\n")


def test_the_flag_editor_changes_what_is_served_at_once(world: World, kubectl: Client, measure: Measure) -> None:
    door = world.door()
    response, _ = door.http("flagd.toy", 4000, Request("GET", "/api/read"))
    assert response is not None
    data = json.loads(response.body)
    data["flags"]["apiFailure"]["defaultVariant"] = "on"
    answer, reason = door.http(
        "flagd.toy", 4000, Request("POST", "/api/write", {}, json.dumps({"data": data}).encode())
    )
    assert (answer and answer.status, reason) == (200, "ok")
    assert measure(world, 20) < 0.3
    assert measure(world, 20) == pytest.approx(0.0, abs=1e-6)


def test_a_request_to_nobody_says_why(world: World) -> None:
    assert world.door().http("nobody.toy", 80, Request("GET", "/")) == (None, "nxdomain")
    assert world.door().http("web.toy", 81, Request("GET", "/")) == (None, "timeout")


def test_a_forwarded_port_speaks_http(world: World, kubectl: Client, pods: Pods) -> None:
    session = world.door().connect("toy", name_of(pods, kubectl, "web"), 8080)
    session.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert session.read()[0][1].startswith(b"HTTP/1.1 200 OK\r\n")
    with pytest.raises(ApiError, match="connect: connection refused"):
        world.door().connect("toy", name_of(pods, kubectl, "web"), 81)


def test_pod_metrics_show_what_a_pod_uses(world: World, kubectl: Client) -> None:
    world.advance(world.now + 120)
    found = {m["metadata"]["name"]: m for m in world.door().pod_metrics("toy")}
    assert len(found) == 5
    cpu = {name: int(m["containers"][0]["usage"]["cpu"].rstrip("n")) / 1e9 for name, m in found.items()}
    # Ten calls a second of 20 ms CPU on each api pod.
    assert all(value == pytest.approx(0.2, rel=0.05) for name, value in cpu.items() if name.startswith("api"))
    nodes = world.door().node_metrics()
    assert [n["metadata"]["name"] for n in nodes] == ["node-1", "node-2"]


def test_files_are_copied_in_and_out_by_tar(world: World, kubectl: Client, pods: Pods) -> None:
    name = name_of(pods, kubectl, "flagd")
    out = world.door().exec("toy", name, "flagd", ["tar", "cf", "-", "/etc/flagd/flags.json"])
    data = b"".join(frame for fd, frame in out.read() if fd == 1)
    assert out.exit_code == 0
    assert b"apiFailure" in data
    into = world.door().exec("toy", name, "flagd", ["tar", "-xmf", "-", "-C", "/tmp"], stdin=True)
    into.write(data)
    into.close()
    assert into.exit_code == 0
    _, text, _ = finish(world, world.door().exec("toy", name, "flagd", ["cat", "/tmp/etc/flagd/flags.json"]))
    assert json.loads(text)["flags"]["apiFailure"]["state"] == "ENABLED"
    missing = world.door().exec("toy", name, "flagd", ["tar", "cf", "-", "/nowhere"])
    assert (missing.exit_code, missing.read()[-1]) == (
        2,
        (2, b"tar: /nowhere: Cannot stat: No such file or directory\n"),
    )


def test_a_program_that_ends_at_once_leaves_its_words(world: World, kubectl: Client) -> None:
    """What a container says in the moment of its end is in its log, in `--previous`, and in Loki."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "brief", "namespace": "toy"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "brief", "image": "busybox:1.36", "command": ["echo", "hi"]}],
        },
    }
    kubectl.create("pods", pod)
    world.advance(world.now + 20)
    assert kubectl.get("pods", "brief", "toy")["status"]["phase"] == "Succeeded"
    door = world.door()
    assert [text for _, text in door.logs(LogQuery("toy", "brief", "brief"))] == ["hi"]
    found = [
        text
        for s in door.streams(0.0, world.now)
        for _, text in s.lines(0.0, world.now)
        if dict(s.labels).get("pod") == "brief"
    ]
    assert found == ["hi"]


def test_a_command_that_reads_no_input_ends_by_itself_on_a_terminal(world: World, kubectl: Client, pods: Pods) -> None:
    """`exec -it POD -- sh -c '...'` does not wait for a terminal that nobody closes."""
    name = name_of(pods, kubectl, "web")
    session = world.door().exec("toy", name, "web", ["sh", "-c", "cat /etc/hostname"], stdin=True, tty=True)
    assert finish(world, session) == (0, f"{name}\r\n", "")


def test_a_debug_container_joins_a_running_pod(world: World, kubectl: Client, pods: Pods) -> None:
    """An ephemeral container runs, can be entered, logs, ends without a restart, and the pod stays Ready."""
    name = name_of(pods, kubectl, "web")
    pod = kubectl.get("pods", name, "toy")
    shell = {"name": "shell", "image": "busybox:1.36", "stdin": True, "tty": True}
    brief = {"name": "brief", "image": "busybox:1.36", "command": ["echo", "hi"]}
    spec = {**pod["spec"], "ephemeralContainers": [shell, brief]}
    kubectl.update("pods", {**pod, "spec": spec}, subresource="ephemeralcontainers")
    world.advance(world.now + 30)
    status = kubectl.get("pods", name, "toy")["status"]
    states = {row["name"]: row["state"] for row in status["ephemeralContainerStatuses"]}
    assert "running" in states["shell"]
    assert states["brief"]["terminated"]["exitCode"] == 0
    assert {row["type"]: row["status"] for row in status["conditions"]}["Ready"] == "True"
    assert [text for _, text in world.door().logs(LogQuery("toy", name, "brief"))] == ["hi"]
    code, out, _ = finish(world, world.door().exec("toy", name, "shell", ["hostname"]))
    assert (code, out) == (0, f"{name}\n")
    again = World.load(world.save())
    assert again.door().logs(LogQuery("toy", name, "brief")) == world.door().logs(LogQuery("toy", name, "brief"))


@pytest.mark.parametrize(
    ("image", "port", "wget", "curl"),
    [
        ("", 9000, "error getting response: Connection reset by peer", "(1) Received HTTP/0.9 when not allowed"),
        ("redis:8", 6379, "error getting response", "(52) Empty reply from server"),
    ],
)
def test_a_port_that_speaks_no_http_is_open_and_answers_with_nonsense(
    world: World, kubectl: Client, image: str, port: int, wget: str, curl: str
) -> None:
    host = "api"
    pods = [("shell", "curlimages/curl:8.14.1", ["sleep", "inf"]), *([("store", image, None)] if image else [])]
    for name, wanted, command in pods:
        container = {"name": "main", "image": wanted, **({"command": command} if command else {})}
        meta = {"name": name, "namespace": "toy"}
        spec = {"containers": [container]}
        kubectl.create("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}, "toy")
    world.advance(world.now + 30)
    if image:
        host = str(kubectl.get("pods", "store", "toy")["status"]["podIP"])

    def run(*argv: str) -> tuple[int | None, str, str]:
        return finish(world, world.door().exec("toy", "shell", "", [*argv]))

    assert run("nc", "-zv", host, str(port))[2].endswith(f":{port}) open\n")
    assert run("wget", "-qO-", f"http://{host}:{port}/") == (1, "", f"wget: {wget}\n")
    code, _, said = run("curl", "-sS", f"http://{host}:{port}/")
    assert said == f"curl: {curl}\n"
    assert str(code) == curl[1:].split(")")[0]


def test_the_inside_of_a_store_agrees_with_itself(world: World, kubectl: Client) -> None:
    limits = {"memory": "64Mi", "cpu": "500m"}
    mount = {"name": "tmp", "mountPath": "/scratch"}
    container = {"name": "main", "image": "redis:8", "resources": {"limits": limits}, "volumeMounts": [mount]}
    spec = {"containers": [{**container, "workingDir": "/data"}], "volumes": [{"name": "tmp", "emptyDir": {}}]}
    meta = {"name": "store", "namespace": "toy"}
    kubectl.create("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}, "toy")
    world.advance(world.now + 30)

    def run(script: str) -> str:
        code, out, said = finish(world, world.door().exec("toy", "store", "", ["sh", "-c", script]))
        assert (code, said) == (0, "")
        return out

    assert run("pwd; ls; ls -la | grep -c ' \\.'") == "/data\n2\n"
    total = run("free").splitlines()[1].split()[1]
    assert run("grep MemTotal /proc/meminfo").split() == ["MemTotal:", total, "kB"]
    assert run("cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max") == f"{64 * 2**20}\n50000 100000\n"
    assert run("cat /proc/1/cmdline") == "redis-server\0*:6379\0"
    assert run("ps | grep -c redis-server; nproc") == "1\n8\n"
    assert run("mount | grep scratch") == "/dev/sda1 on /scratch type ext4 (rw,relatime)\n"
    assert "0.0.0.0:6379" in run("netstat -tln")
    assert "Jan 12 08:" in run("ls -l /etc")
