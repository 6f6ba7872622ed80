"""Defaults and rules of pod volumes. Called by `pods`."""

from itbench.kube.client import Obj
from itbench.kube.kinds.check import Check
from itbench.kube.names import label_errors

_MODES = ("secret", "configMap", "downwardAPI", "projected")
_HOST_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)


def default_volume(volume: Obj) -> None:
    """Modes, and an empty directory where no source is given."""
    if not any(key != "name" for key in volume):
        volume["emptyDir"] = {}
    for key in _MODES:
        if key in volume:
            volume[key].setdefault("defaultMode", 420)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    if "projected" in volume:
        for source in volume["projected"].get("sources", ()):
            if "serviceAccountToken" in source:
                source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
            _default_fields(source.get("downwardAPI"))
    _default_fields(volume.get("downwardAPI"))
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        template.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _default_fields(source: Obj | None) -> None:
    for item in (source or {}).get("items", ()):
        if "fieldRef" in item:
            item["fieldRef"].setdefault("apiVersion", "v1")


def _check_items(items: list[Obj], field: str, check: Check) -> None:
    for index, item in enumerate(items):
        where = f"{field}[{index}]"
        if not item.get("key"):
            check.required(f"{where}.key")
        if not item.get("path"):
            check.required(f"{where}.path")
        elif item["path"].startswith("/"):
            check.invalid(f"{where}.path", item["path"], "must be a relative path")


def _check_source(volume: Obj, field: str, check: Check) -> None:
    if "configMap" in volume:
        if not volume["configMap"].get("name"):
            check.required(f"{field}.configMap.name")
        _check_items(volume["configMap"].get("items", []), f"{field}.configMap.items", check)
    if "secret" in volume:
        if not volume["secret"].get("secretName"):
            check.required(f"{field}.secret.secretName")
        _check_items(volume["secret"].get("items", []), f"{field}.secret.items", check)
    if "persistentVolumeClaim" in volume:
        claim = volume["persistentVolumeClaim"].get("claimName", "")
        if not claim:
            check.required(f"{field}.persistentVolumeClaim.claimName")
    if "hostPath" in volume:
        path = volume["hostPath"].get("path", "")
        if not path:
            check.required(f"{field}.hostPath.path")
        elif ".." in path.split("/"):
            check.invalid(f"{field}.hostPath.path", path, "must not contain '..'")
        check.one_of(f"{field}.hostPath.type", volume["hostPath"].get("type"), _HOST_TYPES, required=False)
    for key in _MODES:
        mode = (volume.get(key) or {}).get("defaultMode")
        if isinstance(mode, int) and not 0 <= mode <= 0o777:
            text = "must be a number between 0 and 0777 (octal), both inclusive"
            check.invalid(f"{field}.{key}.defaultMode", mode, text)


def check_volumes(volumes: list[Obj], field: str, check: Check) -> set[str]:
    """All volumes; returns the names that may be mounted."""
    names: set[str] = set()
    for index, volume in enumerate(volumes):
        where = f"{field}[{index}]"
        sources = [key for key in volume if key != "name"]
        if not sources:
            check.required(where, "must specify a volume type")
        for key in sources[1:]:
            check.forbidden(f"{where}.{key}", "may not specify more than 1 volume type")
        faults = len(check.causes)
        if len(sources) == 1:
            _check_source(volume, where, check)
        name = volume.get("name", "")
        errors = label_errors(name) if name else []
        if not name:
            check.required(f"{where}.name")
        elif errors:
            check.all_invalid(f"{where}.name", name, errors)
        elif name in names:
            check.duplicate(f"{where}.name", name)
        if len(check.causes) == faults and len(sources) == 1:
            names.add(name)
    return names
