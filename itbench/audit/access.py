"""Connects to the estate that a kubeconfig names, and says which rights a profile needs. Called by the command line."""

import os
from pathlib import Path
from typing import Any

import yaml

from itbench.core.documents.reading import DocumentError, read_yaml
from itbench.core.errors import UsageError
from itbench.kube.client import ApiError
from itbench.kube.remote import RemoteClient
from itbench.policy.controls.catalog import PROFILES, Profile


def profile(name: str) -> Profile:
    """A profile by name, or by name and version.

    Raises:
        UsageError: no such profile or version.
    """
    head, _, version = name.partition("@")
    found = PROFILES.get(head)
    if found is None or version not in ("", found.version):
        raise UsageError("no such profile", seen=name, expected=" or ".join(each.key for each in PROFILES.values()))
    return found


def connect(kubeconfig: str, context: str) -> tuple[RemoteClient, dict[str, str]]:
    """A client, and what is known of the estate.

    Raises:
        UsageError: no such file. EnvironmentFault: nobody answers.
    """
    if kubeconfig and not Path(kubeconfig).is_file():
        raise UsageError("no such kubeconfig", seen=kubeconfig)
    _check(kubeconfig)
    client = RemoteClient(kubeconfig, context=context, manager="itbench-audit")
    try:
        version = str(client.raw("/version").get("gitVersion", ""))
    except ApiError:
        version = ""
    return client, _about(kubeconfig, context) | {"server_version": version}


def _check(kubeconfig: str) -> None:
    """Raise UsageError for a file that is no kubeconfig, before a client chokes on it."""
    if not kubeconfig:
        return
    try:
        document, _ = read_yaml(Path(kubeconfig))
    except DocumentError as error:
        raise UsageError("not a kubeconfig", seen=str(error)) from error
    lists = ("clusters", "contexts", "users")
    rows = [document.get(part) or () for part in lists] if isinstance(document, dict) else [None]
    if not all(isinstance(part, list | tuple) and all(isinstance(row, dict) for row in part) for part in rows):
        raise UsageError("not a kubeconfig", seen=kubeconfig, expected="lists of clusters, contexts and users")


def _about(kubeconfig: str, context: str) -> dict[str, str]:
    """Server, context and user as the kubeconfig names them; never credentials."""
    first = (kubeconfig or os.environ.get("KUBECONFIG", "") or "~/.kube/config").split(os.pathsep)[0]
    try:
        document = yaml.safe_load(Path(first).expanduser().read_text(encoding="utf-8")) or {}
    except (OSError, yaml.YAMLError):
        return {}
    chosen = context or document.get("current-context", "")
    entry = _named(document, "contexts", chosen).get("context", {})
    cluster = _named(document, "clusters", entry.get("cluster", "")).get("cluster", {})
    return {
        "context": str(chosen),
        "identity": str(entry.get("user", "")),
        "server": str(cluster.get("server", "")),
    }


def _named(document: dict[str, Any], part: str, name: str) -> dict[str, Any]:
    return next((each for each in document.get(part) or () if each.get("name") == name), {})


def cluster_role(wanted: Profile) -> str:
    """The ClusterRole that an auditor's identity needs: list only, no Secrets."""
    groups: dict[str, list[str]] = {}
    for resource in wanted.resources:
        plural, _, group = resource.partition(".")
        groups.setdefault(group, []).append(plural)
    rules = [
        {"apiGroups": [group], "resources": sorted(names), "verbs": ["list"]} for group, names in sorted(groups.items())
    ]
    rules.append({"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]})
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "itbench-audit"},
        "rules": rules,
    }
    return str(yaml.safe_dump(role, sort_keys=False))
