"""The test image of many commands answers and ends like the real one."""

import json
from typing import Any

import pytest

from itbench.kube.client import Client
from itbench.kube.door import LogQuery, Request
from itbench.world.estate import World

IMAGE = "registry.k8s.io/e2e-test-images/agnhost:2.56"


@pytest.fixture
def empty() -> World:
    """A cluster without an app."""
    return World.create(None, seed=1, nodes=2)


def start(world: World, name: str, *args: str, image: str = IMAGE, **container: Any) -> Client:
    """A pod with one container, given time to start."""
    client = world.planes["main"].client("test")
    spec = {"containers": [{"name": "c", "image": image, "args": list(args), **container}], "restartPolicy": "Never"}
    client.create("pods", {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}, "default")
    world.advance(world.now + 10.0)
    return client


def ask(world: World, pod: str, port: int, path: str) -> tuple[int, str]:
    """One request to a port of a pod."""
    cluster = world.door().cluster
    state = cluster.state("default", pod)
    assert state is not None
    answer = cluster.serve(state, port, Request("GET", path))
    return (answer.status, answer.body.decode()) if answer is not None else (0, "")


def test_its_commands_open_the_ports_that_their_options_say(empty: World) -> None:
    start(empty, "a", "netexec", "--http-port=8083")
    start(empty, "b", "serve-hostname")
    start(empty, "c")
    assert ask(empty, "a", 8083, "/hostname") == (200, "a")
    assert ask(empty, "a", 8083, "/echo?msg=hi") == (200, "hi")
    assert ask(empty, "a", 8080, "/hostname") == (0, "")
    assert ask(empty, "b", 9376, "/") == (200, "b")
    assert ask(empty, "c", 8080, "/") == (0, "")


def test_netexec_runs_commands_in_its_container(empty: World) -> None:
    start(empty, "a", "netexec")
    status, body = ask(empty, "a", 8080, "/shell?cmd=echo%20x%20%3E%20/tmp/f;cat%20/tmp/f")
    assert (status, json.loads(body)) == (200, {"output": "x\n"})
    assert json.loads(ask(empty, "a", 8080, "/shell?shellCommand=exit%203")[1])["error"] == "exit status 3"


def test_the_guestbook_keeps_what_it_is_told(empty: World) -> None:
    client = start(empty, "agnhost-primary", "guestbook", "--http-port", "6379")
    for name in ("agnhost-primary", "agnhost-replica"):
        spec = {"selector": {"app": name}, "ports": [{"port": 6379}]}
        client.create("services", {"metadata": {"name": name}, "spec": spec}, "default")
    start(empty, "agnhost-replica", "guestbook", "--replicaof", "agnhost-primary", "--http-port", "6379")
    start(empty, "front", "guestbook", "--backend-port", "6379")
    page = "/guestbook?key=messages&value={}&cmd={}"
    assert ask(empty, "front", 80, page.format("", "get")) == (200, '{"data":""}')
    assert ask(empty, "front", 80, page.format("Entry", "set")) == (200, '{"message":"Updated"}')
    assert ask(empty, "front", 80, page.format("", "get")) == (200, '{"data":"Entry"}')


def test_a_log_generator_writes_its_lines_over_its_time_and_ends(empty: World) -> None:
    client = start(empty, "logs", "logs-generator", "--log-lines-total", "10", "--run-duration", "20s")
    half = empty.door().logs(LogQuery("default", "logs", "c"))
    empty.advance(empty.now + 20.0)
    lines = empty.door().logs(LogQuery("default", "logs", "c"))
    assert 0 < len(half) < len(lines) == 10
    assert all(f" {number} " in text and "/api/v1/namespaces/" in text for number, (_, text) in enumerate(lines))
    assert client.get("pods", "logs", "default")["status"]["phase"] == "Succeeded"


def test_an_unknown_command_fails(empty: World) -> None:
    client = start(empty, "bad", "no-such-command")
    ended = client.get("pods", "bad", "default")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == 1
    assert 'unknown command "no-such-command"' in empty.door().logs(LogQuery("default", "bad", "c"))[0][1]


def test_liveness_is_well_for_ten_seconds(empty: World) -> None:
    start(empty, "live", "liveness")
    assert ask(empty, "live", 8080, "/healthz") == (200, "ok")
    empty.advance(empty.now + 15.0)
    assert ask(empty, "live", 8080, "/healthz")[0] == 500


def test_a_web_server_serves_the_files_of_its_folder(empty: World) -> None:
    start(empty, "web", image="registry.k8s.io/e2e-test-images/httpd:2.4.38-4")
    assert ask(empty, "web", 80, "/index.html")[0] == 200
    state = empty.door().cluster.state("default", "web")
    assert state is not None
    inside = empty.door().cluster.inside(state, state.containers["c"])
    assert inside.remove("/usr/local/apache2/htdocs/index.html")
    assert ask(empty, "web", 80, "/index.html")[0] == 404


def test_a_file_that_is_moved_away_and_back_makes_a_pod_unready_and_ready(empty: World) -> None:
    probe = {"httpGet": {"path": "/index.html", "port": 80}, "periodSeconds": 1, "failureThreshold": 1}
    client = start(empty, "web", image="registry.k8s.io/e2e-test-images/httpd:2.4.38-4", readinessProbe=probe)
    cluster = empty.door().cluster
    state = cluster.state("default", "web")
    assert state is not None

    def ready_after(line: str) -> bool:
        assert cluster._shell(cluster.inside(state, state.containers["c"]), line)[1] == 0
        empty.advance(empty.now + 5.0)
        return bool(client.get("pods", "web", "default")["status"]["containerStatuses"][0]["ready"])

    assert not ready_after("mv -v /usr/local/apache2/htdocs/index.html /tmp/")
    assert ready_after("mv -v /tmp/index.html /usr/local/apache2/htdocs/")
