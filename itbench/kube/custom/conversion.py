"""Versions of one definition: their order, which is stored, and conversion between them; called by `model` and `serving`."""

import re
from collections.abc import Callable

from itbench.kube.client import Obj

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
Ask = Callable[[Obj, Obj, str], Obj]
"""(definition, object, version) -> the object in that version, by the webhook that converts."""
_STAGE = {"": 3, "beta": 2, "alpha": 1}


def storage_version(definition: Obj) -> str:
    """The name of the version that is stored."""
    return next(str(row["name"]) for row in definition["spec"]["versions"] if row["storage"])


def version_key(name: str) -> tuple[int, int, int, str]:
    """Sorts versions as discovery does: v2, v1, v1beta2, v1beta1, v1alpha1, then other names alphabetically."""
    match = _VERSION.fullmatch(name)
    if match is None:
        return 0, 0, 0, name
    return -_STAGE[match[2] or ""], -int(match[1]), -int(match[3] or 0), ""


def deprecation(definition: Obj, version: Obj) -> str:
    """The warning that goes with every use of a deprecated version."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        return str(version["deprecationWarning"])
    spec = definition["spec"]
    group, kind, mine = spec["group"], spec["names"]["kind"], version["name"]
    text = f"{group}/{mine} {kind} is deprecated"
    key = version_key(mine)
    better = [
        row["name"]
        for row in spec["versions"]
        if row["served"] and not row.get("deprecated") and version_key(row["name"]) < key
    ]
    return f"{text}; use {group}/{min(better, key=version_key)} {kind}" if better else text


def convert(definition: Obj, obj: Obj, version: str, ask: Ask | None = None) -> Obj:
    """An object of a definition in another of its versions.

    Args:
        ask: asks a conversion webhook (`hook.converter`); None where there is no registry.

    Raises:
        ApiError: 500, the webhook that converts versions cannot be asked or answers nonsense.
    """
    api_version = f"{definition['spec']['group']}/{version}"
    if obj["apiVersion"] == api_version:
        return obj
    if ask is not None and definition["spec"].get("conversion", {}).get("strategy", "None") == "Webhook":
        return ask(definition, obj, version)
    return {**obj, "apiVersion": api_version}
