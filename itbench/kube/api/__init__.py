"""The HTTP door of the embedded control plane: HTTP, websockets, time translation; all else is below it.

    server = await serve(plane, pacer, door)
    server.url, server.kubeconfig("oncall"), server.token("grader", ("system:masters",))
    await server.close()

Called by the environment that stands a trial up, and by `itbench kube`.
"""

from itbench.kube.api.server import Server, serve

__all__ = ["Server", "serve"]
