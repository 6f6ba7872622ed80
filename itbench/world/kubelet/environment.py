"""Resolves the environment of a container from its spec, ConfigMaps, Secrets and the pod. Called when a container is created."""

import re

from itbench.kube.client import Obj
from itbench.world.kubelet.downward import field_of, resource_of
from itbench.world.kubelet.state import PodState
from itbench.world.kubelet.volumes import secret_text
from itbench.world.objects import Objects

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


class ConfigError(Exception):
    """The environment cannot be built; the text is the kubelet's (`configmap "x" not found`)."""


def resolve(objects: Objects, obj: Obj, spec: Obj, pod: PodState) -> dict[str, str]:
    """The environment of a container.

    Raises:
        ConfigError: a reference without target.
    """
    env = _service_links(objects, obj, pod)
    for source in spec.get("envFrom") or ():
        env.update(_whole(objects, pod, source))
    for item in spec.get("env") or ():
        value = _value(objects, obj, spec, pod, item, env)
        if value is not None:
            env[item["name"]] = value
    base = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME": pod.name}
    return {**base, **env, "HOME": env.get("HOME", "/root")}


def _service_links(objects: Objects, obj: Obj, pod: PodState) -> dict[str, str]:
    env: dict[str, str] = {}
    names = [("default", "kubernetes")]
    if obj["spec"].get("enableServiceLinks") is not False:
        names += [(pod.namespace, s["metadata"]["name"]) for s in objects.within("services", pod.namespace)]
    for namespace, name in names:
        service = objects.get("services", namespace, name)
        address = service["spec"].get("clusterIP") if service else None
        if service is None or not address or address == "None" or not service["spec"].get("ports"):
            continue
        env |= _of_service(name, str(address), service["spec"]["ports"])
    return env


def _of_service(name: str, address: str, ports: list[Obj]) -> dict[str, str]:
    """What a Service with an address adds: the addresses by port and name, and the variables of old container links."""
    prefix, first = _variable(name), ports[0]
    env = {f"{prefix}_SERVICE_HOST": address, f"{prefix}_SERVICE_PORT": str(first["port"])}
    for port in ports:
        number, protocol = str(port["port"]), port.get("protocol") or "TCP"
        host = f"[{address}]" if ":" in address else address
        url, link = f"{protocol.lower()}://{host}:{number}", f"{prefix}_PORT_{number}_{protocol.upper()}"
        if port.get("name"):
            env[f"{prefix}_SERVICE_PORT_{_variable(port['name'])}"] = number
        if port is first:
            env[f"{prefix}_PORT"] = url
        env |= {link: url, f"{link}_PROTO": protocol.lower(), f"{link}_PORT": number, f"{link}_ADDR": address}
    return env


def _variable(name: str) -> str:
    return name.upper().replace("-", "_")


def _whole(objects: Objects, pod: PodState, source: Obj) -> dict[str, str]:
    prefix = source.get("prefix", "")
    for kind, resource in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
        reference = source.get(kind)
        if not reference:
            continue
        found = objects.get(resource, pod.namespace, reference["name"])
        if found is None:
            if reference.get("optional"):
                return {}
            raise ConfigError(f'{"configmap" if kind == "configMapRef" else "secret"} "{reference["name"]}" not found')
        data = found.get("data") or {}
        return {prefix + k: (secret_text(found, k) or "") if resource == "secrets" else str(data[k]) for k in data}
    return {}


def _value(objects: Objects, obj: Obj, spec: Obj, pod: PodState, item: Obj, env: dict[str, str]) -> str | None:
    source = item.get("valueFrom")
    if not source:
        return _REFERENCE.sub(lambda hit: "$" if hit[0] == "$$" else env.get(hit[1], hit[0]), item.get("value") or "")
    if "configMapKeyRef" in source:
        return _key(objects, pod, "configmaps", source["configMapKeyRef"])
    if "secretKeyRef" in source:
        return _key(objects, pod, "secrets", source["secretKeyRef"])
    if "fieldRef" in source:
        return field_of(obj, pod, source["fieldRef"]["fieldPath"])
    if "resourceFieldRef" in source:
        return resource_of(spec, source["resourceFieldRef"])
    return None


def _key(objects: Objects, pod: PodState, resource: str, reference: Obj) -> str | None:
    found = objects.get(resource, pod.namespace, reference["name"])
    singular, proper = ("configmap", "ConfigMap") if resource == "configmaps" else ("secret", "Secret")
    if found is None:
        if reference.get("optional"):
            return None
        raise ConfigError(f'{singular} "{reference["name"]}" not found')
    text = (
        secret_text(found, reference["key"])
        if resource == "secrets"
        else (found.get("data") or {}).get(reference["key"])
    )
    if text is None and not reference.get("optional"):
        raise ConfigError(f"couldn't find key {reference['key']} in {proper} {pod.namespace}/{reference['name']}")
    return None if text is None else str(text)
