"""Defaults and rules of containers: images, ports, env, probes, resources, mounts. Called by `pods`."""

import re
from collections.abc import Iterator
from typing import Any

from itbench.kube.client import Obj
from itbench.kube.kinds.check import Check
from itbench.kube.names import (
    config_key_errors,
    env_name_errors,
    label_errors,
    port_name_errors,
    qualified_errors,
    subdomain_errors,
)
from itbench.kube.quantity import parse_quantity

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_STANDARD = ("cpu", "memory", "ephemeral-storage", "storage")
_INTEGERS = ("pods", "services", "secrets", "configmaps")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_POD_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_SUBSCRIPT = re.compile(r"(metadata\.(?:labels|annotations))\['(.*)'\]")

# -- defaults ------------------------------------------------------------------------------------------------------------


def pull_policy(image: str) -> str:
    """Always for `latest` and untagged images."""
    last = image.rsplit("/", 1)[-1]
    tagged = "@" in image or (":" in last and not last.endswith(":latest"))
    return "IfNotPresent" if tagged else "Always"


def _default_http(action: Obj | None) -> None:
    if action is not None:
        action.setdefault("path", "/")
        action.setdefault("scheme", "HTTP")


def _default_probe(probe: Obj) -> None:
    for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not probe.get(key):
            probe[key] = value
    _default_http(probe.get("httpGet"))
    if "grpc" in probe:
        probe["grpc"].setdefault("service", "")


def default_container(container: Obj) -> None:
    """What `get -o yaml` shows of a container."""
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image", ""))
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
    for key in PROBES:
        if key in container:
            _default_probe(container[key])
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict):
            _default_http(hook.get("httpGet"))
    for row in container.get("env", ()):
        field = (row.get("valueFrom") or {}).get("fieldRef")
        if field is not None:
            field.setdefault("apiVersion", "v1")
        resource = (row.get("valueFrom") or {}).get("resourceFieldRef")
        if resource is not None:
            resource.setdefault("divisor", "0")


def default_requests(container: Obj) -> None:
    """Requests that are missing equal the limits (pods only, not templates)."""
    resources = container.get("resources") or {}
    limits = resources.get("limits")
    if limits:
        requests = resources.setdefault("requests", {})
        for key, value in limits.items():
            requests.setdefault(key, value)


# -- rules ---------------------------------------------------------------------------------------------------------------


def check_port_number(value: Any, field: str, check: Check) -> None:
    """1 to 65535."""
    if not isinstance(value, int) or not 0 < value < 65536:
        check.invalid(field, value, "must be between 1 and 65535, inclusive")


def check_port_or_name(value: Any, field: str, check: Check) -> None:
    """A port number or the name of a port."""
    if isinstance(value, str):
        check.all_invalid(field, value, port_name_errors(value))
    else:
        check_port_number(value, field, check)


def _check_ports(ports: list[Obj], field: str, check: Check) -> None:
    names: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{field}[{index}]"
        name = port.get("name", "")
        if name:
            errors = port_name_errors(name)
            if errors:
                check.all_invalid(f"{where}.name", name, errors)
            elif name in names:
                check.duplicate(f"{where}.name", name)
            names.add(name)
        if not port.get("containerPort"):
            check.required(f"{where}.containerPort")
        else:
            check_port_number(port["containerPort"], f"{where}.containerPort", check)
        if port.get("hostPort"):
            check_port_number(port["hostPort"], f"{where}.hostPort", check)
        check.one_of(f"{where}.protocol", port.get("protocol"), _PROTOCOLS)


def _check_field_ref(ref: Obj, field: str, check: Check) -> None:
    path = ref.get("fieldPath", "")
    if not path:
        check.required(f"{field}.fieldPath")
        return
    match = _SUBSCRIPT.fullmatch(path)
    if match:
        check.all_invalid(field, match.group(2), qualified_errors(match.group(2).lower()))
    elif path.split(".")[0] not in ("metadata", "spec", "status"):
        text = f"error converting fieldPath: field label not supported: {path}"
        check.invalid(f"{field}.fieldPath", path, text)
    elif path not in _POD_FIELDS or path in ("metadata.annotations", "metadata.labels"):
        if path in _POD_FIELDS:
            check.unsupported(
                f"{field}.fieldPath", path, [row for row in _POD_FIELDS if "." in row and row not in _MAPS]
            )
        else:
            text = f"error converting fieldPath: field label not supported: {path}"
            check.invalid(f"{field}.fieldPath", path, text)


_MAPS = ("metadata.annotations", "metadata.labels")


def _check_env(env: list[Obj], field: str, check: Check) -> None:
    for index, row in enumerate(env):
        where = f"{field}[{index}]"
        name = row.get("name", "")
        if not name:
            check.required(f"{where}.name")
        else:
            check.all_invalid(f"{where}.name", name, env_name_errors(name))
        source = row.get("valueFrom")
        if source is not None:
            _check_env_source(row, source, f"{where}.valueFrom", check)


def _check_env_source(row: Obj, source: Obj, field: str, check: Check) -> None:
    known = [key for key in ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef") if key in source]
    if "fieldRef" in source:
        _check_field_ref(source["fieldRef"], f"{field}.fieldRef", check)
    for key in ("configMapKeyRef", "secretKeyRef"):
        if key in source:
            ref = source[key]
            if not ref.get("name"):
                check.required(f"{field}.{key}.name")
            if not ref.get("key"):
                check.required(f"{field}.{key}.key")
            else:
                check.all_invalid(f"{field}.{key}.key", ref["key"], config_key_errors(ref["key"]))
    if not known:
        check.invalid(
            field,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
        )
    elif row.get("value"):
        check.invalid(field, "", "may not be specified when `value` is not empty")
    if len(known) > 1:
        check.invalid(field, "", "may not have more than one field specified at a time")


def _check_env_from(rows: list[Obj], field: str, check: Check) -> None:
    for index, row in enumerate(rows):
        where = f"{field}[{index}]"
        if row.get("prefix"):
            check.all_invalid(f"{where}.prefix", row["prefix"], env_name_errors(row["prefix"]))
        sources = [key for key in ("configMapRef", "secretRef") if key in row]
        for key in sources:
            name = row[key].get("name", "")
            if not name:
                check.required(f"{where}.{key}.name")
            else:
                check.all_invalid(f"{where}.{key}.name", name, subdomain_errors(name))
        if not sources:
            check.invalid(field, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(sources) > 1:
            check.invalid(field, "", "may not have more than one field specified at a time")


def check_http(action: Obj, field: str, check: Check) -> None:
    """An httpGet handler."""
    if not action.get("path"):
        check.required(f"{field}.path")
    check_port_or_name(action.get("port", 0), f"{field}.port", check)
    check.one_of(f"{field}.scheme", action.get("scheme"), ("HTTP", "HTTPS"))


def _check_handler(handler: Obj, field: str, check: Check) -> None:
    found = [key for key in (*_HANDLERS, "sleep") if key in handler]
    if not found:
        check.required(field, "must specify a handler type")
        return
    kind = found[0]
    body = handler[kind]
    if kind == "exec" and not body.get("command"):
        check.required(f"{field}.exec.command")
    elif kind == "httpGet":
        check_http(body, f"{field}.httpGet", check)
    elif kind == "tcpSocket":
        check_port_or_name(body.get("port", 0), f"{field}.tcpSocket.port", check)
    elif kind == "grpc":
        check_port_number(body.get("port", 0), f"{field}.grpc.port", check)
    for extra in found[1:]:
        check.forbidden(f"{field}.{extra}", "may not specify more than 1 handler type")


def _check_probe(probe: Obj, kind: str, field: str, check: Check) -> None:
    _check_handler(probe, field, check)
    for key in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        check.non_negative(f"{field}.{key}", probe.get(key))
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        check.invalid(f"{field}.terminationGracePeriodSeconds", grace, "must be greater than 0")
    if kind != "readinessProbe" and probe.get("successThreshold", 1) != 1:
        check.invalid(f"{field}.successThreshold", probe["successThreshold"], "must be 1")
    if kind == "readinessProbe" and grace is not None:
        check.invalid(f"{field}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")


def check_quantity(text: Any, resource: str, field: str, check: Check) -> None:
    """A non-negative quantity, whole where the resource is counted."""
    value = parse_quantity(str(text))
    if value < 0:
        check.invalid(field, str(text), "must be greater than or equal to 0")
    if value.denominator != 1 and ("/" in resource or resource in _INTEGERS) and not resource.startswith("requests."):
        check.invalid(field, str(text), "must be an integer")


def _check_resource_name(name: str, field: str, check: Check) -> None:
    check.all_invalid(field, name, qualified_errors(name))
    if "/" not in name and name not in _STANDARD and not name.startswith("hugepages-") and not qualified_errors(name):
        check.invalid(field, name, "must be a standard resource type or fully qualified")
        check.invalid(field, name, "must be a standard resource for containers")
    elif name == "storage":
        check.invalid(field, name, "must be a standard resource for containers")


def check_resources(resources: Obj, field: str, check: Check) -> None:
    """Requests and limits: known names, requests within limits."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for part, rows in (("limits", limits), ("requests", requests)):
        for name, text in rows.items():
            _check_resource_name(name, f"{field}.{part}[{name}]", check)
            check_quantity(text, name, f"{field}.{part}[{name}]", check)
    for name, text in requests.items():
        limit = limits.get(name)
        if limit is not None and parse_quantity(str(text)) > parse_quantity(str(limit)):
            check.invalid(f"{field}.requests", str(text), f"must be less than or equal to {name} limit of {limit}")
        elif limit is not None and ("/" in name or name.startswith("hugepages-")) and text != limit:
            check.invalid(f"{field}.requests", str(text), f"must be equal to {name} limit of {limit}")


def _check_mounts(mounts: list[Obj], volumes: set[str], field: str, check: Check) -> None:
    paths: set[str] = set()
    for index, row in enumerate(mounts):
        where = f"{field}[{index}]"
        if not row.get("name"):
            check.required(f"{where}.name")
        if row.get("name", "") not in volumes:
            check.missing(f"{where}.name", row.get("name", ""))
        path = row.get("mountPath", "")
        if not path:
            check.required(f"{where}.mountPath")
        elif path in paths:
            check.invalid(f"{where}.mountPath", path, "must be unique")
        paths.add(path)
        sub = row.get("subPath", "")
        if sub.startswith("/"):
            check.invalid(f"{where}.subPath", sub, "must be a relative path")
        if ".." in sub.split("/"):
            check.invalid(f"{where}.subPath", sub, "must not contain '..'")


_GO_SECURITY = (
    "Capabilities",
    "Privileged",
    "SELinuxOptions",
    "WindowsOptions",
    "RunAsUser",
    "RunAsGroup",
    "RunAsNonRoot",
    "ReadOnlyRootFilesystem",
    "AllowPrivilegeEscalation",
    "ProcMount",
    "SeccompProfile",
    "AppArmorProfile",
)


def _go_security(context: Obj) -> Obj:
    """A security context as the server prints its internal form."""
    by_name = {key.lower(): value for key, value in context.items()}
    return {name: by_name.get(name.lower()) for name in _GO_SECURITY}


def _check_security(context: Obj, field: str, check: Check) -> None:
    for key in ("runAsUser", "runAsGroup"):
        value = context.get(key)
        if isinstance(value, int) and value < 0:
            check.invalid(f"{field}.{key}", value, "must be between 0 and 2147483647, inclusive")
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            check.invalid(field, _go_security(context), text)
        added = (context.get("capabilities") or {}).get("add") or ()
        if "CAP_SYS_ADMIN" in added:
            text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            check.invalid(field, _go_security(context), text)


def check_container(container: Obj, volumes: set[str], field: str, check: Check) -> None:
    """Everything about one container except the uniqueness of its name."""
    image = container.get("image", "")
    if image != image.strip():
        check.invalid(f"{field}.image", image, "must not have leading or trailing whitespace")
    policy = container.get("terminationMessagePolicy")
    check.one_of(f"{field}.terminationMessagePolicy", policy, ("File", "FallbackToLogsOnError"))
    _check_ports(container.get("ports", []), f"{field}.ports", check)
    _check_env(container.get("env", []), f"{field}.env", check)
    _check_env_from(container.get("envFrom", []), f"{field}.envFrom", check)
    _check_mounts(container.get("volumeMounts", []), volumes, f"{field}.volumeMounts", check)
    check.one_of(f"{field}.imagePullPolicy", container.get("imagePullPolicy"), _PULL_POLICIES)
    check_resources(container.get("resources") or {}, f"{field}.resources", check)
    for row in container.get("resizePolicy") or ():
        check.one_of(f"{field}.resizePolicy", row.get("resourceName"), ("cpu", "memory"))
        check.one_of(f"{field}.resizePolicy", row.get("restartPolicy"), ("NotRequired", "RestartContainer"))
    _check_security(container.get("securityContext") or {}, f"{field}.securityContext", check)


_NOT_FOR_EPHEMERAL = "cannot be set for an Ephemeral Container"
_NOT_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    *PROBES,
    "lifecycle",
)


def check_ephemeral(container: Obj, volumes: set[str], others: set[str], field: str, check: Check) -> None:
    """An ephemeral container: like the others, but nothing that a service is made of. `others`: names of the other containers."""
    kept = {key: value for key, value in container.items() if key not in _NOT_EPHEMERAL}
    check_container(kept, volumes, field, check)
    target = container.get("targetContainerName", "")
    if target and target not in others:
        check.missing(f"{field}.targetContainerName", target)
    for key in _NOT_EPHEMERAL:
        if container.get(key):
            check.forbidden(f"{field}.{key}", _NOT_FOR_EPHEMERAL)
    for index, row in enumerate(container.get("volumeMounts") or ()):
        for key in ("subPath", "subPathExpr"):
            if row.get(key):
                check.forbidden(f"{field}.volumeMounts[{index}].{key}", _NOT_FOR_EPHEMERAL)


def check_hooks(container: Obj, field: str, check: Check) -> None:
    """Lifecycle and probes, of containers that may have them."""
    for name, hook in (container.get("lifecycle") or {}).items():
        if isinstance(hook, dict):
            _check_handler(hook, f"{field}.lifecycle.{name}", check)
    for kind in PROBES:
        if kind in container:
            _check_probe(container[kind], kind, f"{field}.{kind}", check)


def container_name_errors(container: Obj, seen: set[str], field: str, check: Check) -> None:
    """The name is a label and unique among all containers of the pod."""
    name = container.get("name", "")
    if not name:
        check.required(f"{field}.name")
        return
    errors = label_errors(name)
    if errors:
        check.all_invalid(f"{field}.name", name, errors)
    elif name in seen:
        check.duplicate(f"{field}.name", name)
    seen.add(name)


def all_containers(spec: Obj) -> Iterator[Obj]:
    """Init, ordinary and ephemeral containers of a pod spec."""
    for key in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(key) or ()
