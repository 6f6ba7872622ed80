"""Admission of exec, attach, port-forward and proxy: policies and webhooks see them as CONNECT; called by `server`."""

from itbench.kube.api import bodies
from itbench.kube.api.door import Call
from itbench.kube.client import Obj

_FLAGS = ("stdin", "stdout", "stderr", "tty")


def _query(call: Call, name: str) -> list[str]:
    return [str(value) for value in call.request.query.getall(name, [])]


def _options(call: Call) -> Obj:
    """The options object of a connection."""
    sub = call.resource.subresource(call.target.subresource)
    shown: Obj = {"kind": sub.kind if sub is not None else "", "apiVersion": "v1"}
    if call.target.subresource == "proxy":
        return {**shown, "path": f"/{call.target.rest}"}
    if call.target.subresource == "portforward":
        ports = [int(part) for text in _query(call, "ports") for part in text.split(",") if part.isdigit()]
        return {**shown, **({"ports": ports} if ports else {})}
    shown |= {key: True for key in _FLAGS if call.flag(key)}
    container, command = call.query.get("container", ""), _query(call, "command")
    return shown | ({"container": container} if container else {}) | ({"command": command} if command else {})


async def admit(call: Call) -> None:
    """Raises an `ApiError` where a policy or webhook refuses the connection."""
    options = bodies.write_options({}, call.user, call.agent)
    call.trace.notes = options.notes
    target, shown = call.target, _options(call)
    namespace = target.namespace if call.resource.namespaced else ""
    registry, resource = call.door.registry, call.resource
    await call.door.weave.run(
        lambda: registry.admit(resource, target.name, namespace, target.subresource, shown, options)
    )
