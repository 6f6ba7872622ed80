"""Versions of one definition: their order, which is stored, and conversion between them; called by `model` and `serving`."""

import re

from itbench.kube.client import ApiError, Obj
from itbench.kube.status import failure

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
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


def _address(client: Obj) -> str:
    service = client.get("service")
    if service is None:
        return str(client.get("url", ""))
    path = "/" + str(service.get("path", "")).lstrip("/")
    return f"https://{service['name']}.{service['namespace']}.svc:{service.get('port', 443)}{path}?timeout=30s"


def _refused(definition: Obj, obj: Obj, version: str) -> ApiError:
    """No program answers webhooks here: what the real server says when nobody can be reached."""
    spec = definition["spec"]
    client = spec["conversion"].get("webhook", {}).get("clientConfig", {})
    target, url = f"{obj['apiVersion']}, Kind={obj['kind']}", _address(client)
    service = client.get("service")
    if service is not None:
        why = f'service "{service["name"]}" not found'
        text = f'conversion webhook for {target} failed: Post "{url}": {why}'
    else:
        host = re.sub(r"^https://([^/:]+).*", r"\1", url)
        text = (
            f'conversion webhook for {target} failed: Post "{url}?timeout=30s": dial tcp: lookup {host}: no such host'
        )
    return failure(500, "", text)


def convert(definition: Obj, obj: Obj, version: str) -> Obj:
    """An object of a definition in another of its versions.

    Raises:
        ApiError: 500, versions are converted by a webhook.
    """
    api_version = f"{definition['spec']['group']}/{version}"
    if obj["apiVersion"] == api_version:
        return obj
    if definition["spec"].get("conversion", {}).get("strategy", "None") == "Webhook":
        raise _refused(definition, obj, version)
    return {**obj, "apiVersion": api_version}
