"""Group-versions that APIServices delegate to other servers: listed in discovery, answered 503; called by `public`, `server`."""

from aiohttp import web

from itbench.kube.registry import Registry

SERVICES = "apiservices.apiregistration.k8s.io"
Groups = dict[str, list[str]]


def groups(registry: Registry) -> Groups:
    """Group -> versions, sorted by name."""
    found: Groups = {}
    for entry in registry.store.list(SERVICES):
        spec = entry.object["spec"]
        group, version = spec.get("group", ""), spec["version"]
        if spec.get("service") is not None and not registry.table.of(group, version):
            found.setdefault(group, []).append(version)
    return found


def is_remote(registry: Registry, group: str, version: str) -> bool:
    """Whether another server should answer for a group-version."""
    entry = registry.store.get(SERVICES, "", f"{version}.{group}")
    return (
        entry is not None and entry.object["spec"].get("service") is not None and not registry.table.of(group, version)
    )


def unavailable() -> web.Response:
    """The aggregator's answer while the other server cannot be reached."""
    headers = {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}
    return web.Response(text="service unavailable\n", status=503, headers=headers)
