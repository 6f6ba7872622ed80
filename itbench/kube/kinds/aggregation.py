"""Rules of APIService objects."""

from itbench.kube.client import Obj
from itbench.kube.kinds.base import Behaviour
from itbench.kube.kinds.check import Check
from itbench.kube.names import label1035_errors, path_segment_errors, subdomain_errors


def _default(obj: Obj) -> None:
    service = obj.get("spec", {}).get("service")
    if service is not None and service.get("port") is None:
        service["port"] = 443


def _validate(obj: Obj, check: Check) -> None:
    spec = obj.get("spec", {})
    name, group, version = obj["metadata"].get("name", ""), spec.get("group", ""), spec.get("version", "")
    if name != f"{version}.{group}":
        check.invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{version}.{group}"')
    if group:
        check.all_invalid("spec.group", group, subdomain_errors(group))
    check.all_invalid("spec.version", version, label1035_errors(version))
    for key, limit in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        value = spec.get(key, 0)
        if not 0 < value <= limit:
            check.invalid(f"spec.{key}", value, f"must be positive and less than {limit}")
    _validate_target(spec, check)


def _validate_target(spec: Obj, check: Check) -> None:
    service = spec.get("service")
    if service is None:
        if spec.get("caBundle"):
            check.invalid(
                "spec.caBundle", f"{len(spec['caBundle'])} bytes", "local APIServices may not have a caBundle"
            )
        if spec.get("insecureSkipTLSVerify"):
            text = "local APIServices may not have insecureSkipTLSVerify"
            check.invalid("spec.insecureSkipTLSVerify", True, text)
        return
    for key in ("namespace", "name"):
        if not service.get(key):
            check.required(f"spec.service.{key}")
    port = service.get("port", 443)
    if not 0 < port < 65536:
        check.invalid("spec.service.port", port, "port is not valid: must be between 1 and 65535, inclusive")
    if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
        check.invalid("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present")


APISERVICE = Behaviour(default=_default, validate=_validate, name_errors=path_segment_errors)
