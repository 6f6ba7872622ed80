"""Volumes of a pod as trees of text files, and the file system that a container sees.

Called by kubelets when a pod starts, when a mounted ConfigMap changes, and by the shell.
"""

import base64
from typing import Any

from itbench.kube.client import Obj
from itbench.world.kubelet.downward import field_of, resource_of
from itbench.world.kubelet.state import ContainerState, PodState
from itbench.world.objects import Objects

Files = dict[str, str]
TOKEN = "service-account token "
"""What a volume holds in place of a token, before its seconds and its audience: the world asks for it when it is read."""
READ_ONLY = ("configMap", "secret", "projected", "downwardAPI")


class MissingSource(Exception):
    """A volume's source does not exist; the text is the kubelet's."""

    def __init__(self, volume: str, text: str) -> None:
        self.volume = volume
        super().__init__(text)


def secret_text(obj: Obj, key: str) -> str | None:
    """A decoded key of a Secret."""
    value = (obj.get("data") or {}).get(key)
    if value is None:
        return (obj.get("stringData") or {}).get(key)
    return base64.b64decode(value).decode("utf-8", "replace")


def _items(obj: Obj, kind: str, source: Obj, volume: str, pod: PodState) -> Files:
    data = obj.get("data") or {}
    texts = {key: (secret_text(obj, key) or "") if kind == "secret" else str(data[key]) for key in data}
    if not source.get("items"):
        return texts
    found: Files = {}
    for item in source["items"]:
        if item["key"] in texts:
            found[item["path"]] = texts[item["key"]]
        elif not source.get("optional"):
            name = obj["metadata"]["name"]
            raise MissingSource(volume, f"references non-existent {kind} key: {item['key']}" if name else "")
    return found


def _object(objects: Objects, pod: PodState, kind: str, source: Obj, volume: str) -> Files:
    name = source.get("secretName") if kind == "secret" and "secretName" in source else source.get("name", "")
    resource = "secrets" if kind == "secret" else "configmaps"
    obj = objects.get(resource, pod.namespace, str(name))
    if obj is None:
        if source.get("optional"):
            return {}
        raise MissingSource(volume, f'{"secret" if kind == "secret" else "configmap"} "{name}" not found')
    return _items(obj, kind, source, volume, pod)


def load(objects: Objects, obj: Obj, pod: PodState) -> dict[str, Files]:
    """Content of every volume of a pod; emptyDirs keep what was written.

    Raises:
        MissingSource: a ConfigMap or Secret, or a key of it, is not there.
    """
    found: dict[str, Files] = {}
    for volume in obj["spec"].get("volumes") or ():
        name = volume["name"]
        if "configMap" in volume:
            found[name] = _object(objects, pod, "configmap", volume["configMap"], name)
        elif "secret" in volume:
            found[name] = _object(objects, pod, "secret", volume["secret"], name)
        elif "projected" in volume:
            found[name] = _projected(objects, obj, pod, volume["projected"], name)
        elif "downwardAPI" in volume:
            found[name] = _downward(obj, pod, volume["downwardAPI"])
        else:
            found[name] = pod.volumes.get(name, {})
    return found


def _downward(obj: Obj, pod: PodState, source: Obj) -> Files:
    """Fields of the pod, and resources of its containers."""
    specs = {spec["name"]: spec for spec in obj["spec"]["containers"]}
    files: Files = {}
    for item in source.get("items") or ():
        if "fieldRef" in item:
            files[item["path"]] = field_of(obj, pod, item["fieldRef"]["fieldPath"])
        else:
            wanted = item.get("resourceFieldRef") or {}
            files[item["path"]] = resource_of(specs.get(wanted.get("containerName", ""), {}), wanted)
    return files


def _projected(objects: Objects, obj: Obj, pod: PodState, source: Obj, name: str) -> Files:
    files: Files = {}
    for part in source.get("sources") or ():
        if "configMap" in part:
            files.update(_object(objects, pod, "configmap", part["configMap"], name))
        elif "secret" in part:
            files.update(_object(objects, pod, "secret", part["secret"], name))
        elif "serviceAccountToken" in part:
            wanted = part["serviceAccountToken"]
            kept = f"{TOKEN}{wanted.get('expirationSeconds') or 3600} {wanted.get('audience', '')}"
            files[wanted.get("path", "token")] = kept
        elif "downwardAPI" in part:
            files.update(_downward(obj, pod, part["downwardAPI"]))
    return files


def uses(obj: Obj, resource: str, name: str) -> bool:
    """Whether a pod mounts a ConfigMap or Secret."""
    kind = "configMap" if resource == "configmaps" else "secret"
    for volume in obj["spec"].get("volumes") or ():
        sources = [volume, *(volume.get("projected", {}).get("sources") or ())]
        for source in sources:
            part: dict[str, Any] = source.get(kind) or {}
            if name in (part.get("name"), part.get("secretName")):
                return True
    return False


class Tree:
    """The file system of one container: image files, mounts, and what was written at run time."""

    def __init__(self, obj: Obj, spec: Obj, pod: PodState, container: ContainerState, image_files: Files) -> None:
        self._pod, self._container = pod, container
        self._image = image_files
        kinds = {v["name"]: next((k for k in v if k != "name"), "") for v in obj["spec"].get("volumes") or ()}
        self._mounts = [
            (
                m["mountPath"].rstrip("/") or "/",
                m["name"],
                m.get("subPath", ""),
                m.get("readOnly") or kinds.get(m["name"]) in READ_ONLY,
            )
            for m in spec.get("volumeMounts") or ()
        ]
        self._mounts.sort(key=lambda mount: -len(mount[0]))

    def _mounted(self, path: str) -> tuple[str, str, bool] | None:
        """(volume, path inside it, read-only) when a mount covers the path."""
        for base, volume, sub, read_only in self._mounts:
            if path == base or path.startswith(base.rstrip("/") + "/"):
                inner = path[len(base) :].lstrip("/")
                whole = f"{sub.rstrip('/')}/{inner}".strip("/") if sub and inner else (sub or inner)
                return volume, whole, bool(read_only)
        return None

    def is_mounted(self, path: str) -> bool:
        """Whether a volume covers the path."""
        return self._mounted(path) is not None

    def read(self, path: str) -> str | None:
        """A file's text, or None."""
        mounted = self._mounted(path)
        if mounted is not None:
            return self._pod.volumes.get(mounted[0], {}).get(mounted[1])
        if path in self._container.overlay:
            return self._container.overlay[path]
        return self._image.get(path)

    def write(self, path: str, text: str) -> str:
        """Write; returns the kernel's error text or nothing."""
        mounted = self._mounted(path)
        if mounted is not None:
            if mounted[2]:
                return "Read-only file system"
            self._pod.volumes.setdefault(mounted[0], {})[mounted[1]] = text
            return ""
        self._container.overlay[path] = text
        return ""

    def remove(self, path: str) -> bool:
        """Remove a file; False when there is none or the place is read-only."""
        if self.read(path) is None:
            return False
        mounted = self._mounted(path)
        if mounted is not None:
            if mounted[2]:
                return False
            del self._pod.volumes[mounted[0]][mounted[1]]
            return True
        self._container.overlay[path] = None
        return True

    def paths(self) -> list[str]:
        """Every file."""
        found = {path for path in self._image if path not in self._container.overlay}
        found |= {path for path, text in self._container.overlay.items() if text is not None}
        found = {path for path in found if self._mounted(path) is None}
        for base, volume, sub, _ in self._mounts:
            for inner in self._pod.volumes.get(volume, {}):
                if sub and inner == sub:
                    found.add(base)
                elif not sub or inner.startswith(sub.rstrip("/") + "/"):
                    found.add(f"{base.rstrip('/')}/{inner[len(sub) :].lstrip('/')}")
        return sorted(found)

    def entries(self, path: str) -> list[str] | None:
        """Names in a folder, folders with a slash at the end; None when there is no such folder."""
        prefix = path.rstrip("/") + "/"
        names: set[str] = set()
        known = path == "/" or any(base == path.rstrip("/") and not sub for base, _, sub, _ in self._mounts)
        for item in (*self.paths(), *(f"{base}/" for base, _, sub, _ in self._mounts if not sub)):
            if item.startswith(prefix) and item != prefix:
                head, slash, _ = item[len(prefix) :].partition("/")
                names.add(head + slash)
        return sorted(names) if names or known else None
