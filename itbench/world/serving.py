"""What servers in the model answer to a single request: health paths, flag files, operations. Used by exec, port-forward, proxy.

Bulk traffic runs in the flow engine; this answers the one request that a person or a probe sends.
"""

import json
from collections.abc import Callable
from posixpath import normpath

from itbench.core.documents.app import App, Flags, Listen, Program, Service
from itbench.kube.client import Obj
from itbench.kube.door import Request, Response
from itbench.world.kubelet.state import ContainerState, PodState
from itbench.world.kubelet.volumes import Tree
from itbench.world.shell.machine import Machine
from itbench.world.text import fill

Health = Callable[[str, str], float]
"""(workload, operation) -> share of recent calls that succeeded, 1.0 without traffic."""

TEXT = {"Content-Type": "text/plain; charset=utf-8"}
JSON = {"Content-Type": "application/json"}
HTML = {"Content-Type": "text/html"}


def answer(
    app: App | None, workload: str, container: ContainerState, listen: Listen, request: Request, health: Health
) -> Response | None:
    """The answer of one port to one HTTP request; None when the port does not speak HTTP."""
    if listen.protocol not in ("http", "grpc"):
        return None
    path = request.path.split("?", 1)[0]
    if listen.protocol == "grpc":
        return None
    service = app.services.get(workload) if app else None
    if service is None or (service.container or workload.rsplit("/", 1)[-1]) != container.name:
        return Response(404, TEXT, b"404 page not found\n")
    name = _operation(service, request.method, path)
    if name is None:
        return Response(404, TEXT, b"404 page not found\n")
    if health(workload, name) < 0.5:
        return Response(500, TEXT, b"Internal Server Error\n")
    return Response(200, JSON, b"{}\n" if request.method != "HEAD" else b"")


def fixed(listen: Listen, machine: Machine, request: Request) -> Response | None:
    """The answer of a declared path or of a file below the port's folder; None when there is neither."""
    path = request.path.split("?", 1)[0]
    if path in listen.paths:
        return Response(200, TEXT, fill(listen.paths[path], hostname=machine.hostname).encode())
    if not listen.root:
        return None
    name = normpath(f"{listen.root}/{path}")
    text = machine.read(name)
    if text is None:
        text = machine.read(f"{name}/index.html")
    if text is None:
        return Response(404, HTML, b"<html><body><h1>404 Not Found</h1></body></html>\n")
    return Response(200, HTML, text.encode())


def _operation(service: Service, method: str, path: str) -> str | None:
    """The operation whose `METHOD /path` is the longest prefix of the request's."""
    best: tuple[int, str] | None = None
    for name in service.operations:
        verb, space, route = name.partition(" ")
        if not space or verb != ("GET" if method == "HEAD" else method):
            continue
        fixed = route.split("{", 1)[0].split("[", 1)[0]
        if path == route or path.startswith(fixed.rstrip("/") + "/") or (fixed != route and path.startswith(fixed)):
            best = max(best or (-1, ""), (len(fixed), name))
    return best[1] if best else None


def edit_flags(flags: Flags, tree: Tree, request: Request) -> Response:
    """The flag editor: reads and writes the file that the flag service serves."""
    assert flags.editor is not None
    path = request.path.split("?", 1)[0].rstrip("/")
    text = tree.read(flags.file) or "{}"
    if path.endswith(flags.editor.read_path) and request.method == "GET":
        return Response(200, JSON, text.encode())
    if path.endswith(flags.editor.write_path) and request.method in ("POST", "PUT"):
        try:
            body = json.loads(request.body)
        except ValueError:
            return Response(400, JSON, b'{"error":"invalid JSON"}')
        data = body.get("data", body) if isinstance(body, dict) else None
        if not isinstance(data, dict) or not isinstance(data.get("flags"), dict):
            return Response(400, JSON, b'{"error":"expected an object with flags"}')
        tree.write(flags.file, json.dumps(data, indent=2) + "\n")
        return Response(200, JSON, b"{}")
    if path in ("", "/feature") and request.method in ("GET", "HEAD"):
        return Response(200, {"Content-Type": "text/html"}, b"<!DOCTYPE html><title>Flagd Configurator</title>\n")
    return Response(404, TEXT, b"Not Found\n")


def listener(program: Program, ports: list[int], port: int) -> Listen | None:
    """The declared listener of a port."""
    for declared, number in zip(program.listens, ports, strict=True):
        if number == port:
            return declared
    return None


def pod_file(pod: PodState, obj: Obj, container: str, path: str) -> str | None:
    """A file as a container of a pod sees it, mounts only."""
    spec = next((c for c in obj["spec"]["containers"] if c["name"] == container), None)
    state = pod.containers.get(container)
    if spec is None or state is None:
        return None
    return Tree(obj, spec, pod, state, {}).read(path)
