"""The kubectl tool: the real program, the trial's identity, no way to another."""

import json

import pytest
from aiohttp import web

from itbench.tools.catalog import toolbox
from itbench.tools.kubectl import environment, refusal, verb

CONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": ""}}],
    "users": [{"name": "u", "user": {}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
    "current-context": "c",
}


@pytest.fixture
async def cluster(tmp_path, make_context):
    """A context whose kubeconfig leads to a server that answers /hello and remembers paths and agents."""
    seen = []

    async def answer(request):
        if request.path != "/version":
            seen.append((request.method, request.path_qs))
        if request.path == "/hello":
            return web.Response(text="hello from the cluster")
        if request.path.endswith("/log"):
            return web.Response(text="one line\nanother error\n")
        return web.Response(status=404, text="{}")

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    config = json.loads(json.dumps(CONFIG))
    config["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{port}"
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(config))
    context = make_context(kubeconfig=str(file))
    context.seen = seen
    yield context
    await runner.cleanup()


async def test_kubectl_runs_with_the_trials_identity(cluster):
    """The command reaches the server of the trial's kubeconfig; the word kubectl may be there or not."""
    box = toolbox(cluster)
    for command in ("get --raw /hello", "kubectl get --raw /hello", ["get", "--raw", "/hello"]):
        result = await box.call("kubectl", {"command": command})
        assert (result.ok, result.text) == (True, "hello from the cluster")
    assert cluster.seen == [("GET", "/hello")] * 3


async def test_a_failed_command_says_so(cluster):
    """Exit code and message are part of the answer."""
    result = await toolbox(cluster).call("kubectl", {"command": "get --raw /missing"})
    assert not result.ok
    assert "exit code 1" in result.text


async def test_a_pipe_is_refused_before_anything_runs(cluster):
    """No request reaches the cluster."""
    result = await toolbox(cluster).call("kubectl", {"command": "get --raw /hello | grep h"})
    assert not result.ok
    assert "'|'" in result.text
    assert cluster.seen == []


async def test_the_user_of_the_host_stays_out_of_it(cluster, monkeypatch):
    """Nothing of the host's home or Kubernetes settings reaches kubectl."""
    monkeypatch.setenv("KUBECONFIG", "/somewhere/else")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    environ = environment(cluster)
    assert environ["KUBECONFIG"] == cluster.endpoints.kubeconfig
    assert str(cluster.scratch) in environ["HOME"]
    assert str(cluster.scratch) in environ["KUBECACHEDIR"]
    assert "HTTPS_PROXY" not in environ


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("get pods -w", "-w"),
        ("get pods --watch=true", "--watch"),
        ("logs -f web", "-f"),
        ("port-forward svc/web 80", "port-forward"),
        ("edit deploy/web", "patch"),
        ("exec -it web -- sh", "-it"),
        ("--kubeconfig /x get pods", "--kubeconfig"),
        ("get pods --token=abc", "--token"),
        ("get pods --as=admin", "--as"),
        ("-s http://x get pods", "-s"),
        ("-n shop", "no command"),
    ],
)
def test_commands_without_end_or_with_another_identity_are_refused(command, word):
    """Each with the reason."""
    assert word in refusal(command.split())


@pytest.mark.parametrize(
    "command",
    [
        "get pods -n shop -o wide",
        "apply -f -",
        "logs deploy/web -n shop --since=5m",
        "rollout status deploy/web --watch=false",
        "exec web -- tail -f /x",
        "exec web -- tool --as=x -it",
        "get pods --watch=false",
    ],
)
def test_ordinary_commands_are_not_refused(command):
    """What follows `--` belongs to the container."""
    assert refusal(command.split()) == ""


def test_the_verb_is_found_behind_global_flags():
    """Values of global flags are no verbs."""
    assert verb(["-n", "get", "--context", "delete", "describe", "pod"]) == "describe"


async def test_logs_filters_lines(cluster):
    """Only lines with the text; the request goes to the pod's log."""
    cluster.seen.clear()
    result = await toolbox(cluster).call("logs", {"namespace": "shop"})
    assert "give target" in result.text
    assert cluster.seen == []


async def test_without_a_cluster_there_is_one_clear_line(make_context):
    """Not a search through the host's own kubeconfig."""
    result = await toolbox(make_context(), ["kubectl"]).call("kubectl", {"command": "get pods"})
    assert result.text == "kubectl: this task has no cluster"
