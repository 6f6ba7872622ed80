"""Pods and pod templates: defaults, rules, what may change after creation."""

from typing import Any

from itbench.kube.client import Obj
from itbench.kube.kinds.addresses import ADDRESS_TEXT, is_address
from itbench.kube.kinds.affinity import check_affinity, check_node_selector, check_spread, check_tolerations
from itbench.kube.kinds.base import Behaviour
from itbench.kube.kinds.check import Check
from itbench.kube.kinds.containers import (
    all_containers,
    check_container,
    check_ephemeral,
    check_hooks,
    container_name_errors,
    default_container,
    default_requests,
)
from itbench.kube.kinds.diff import diff_pods
from itbench.kube.kinds.volumes import check_volumes, default_volume
from itbench.kube.names import label_errors, labels_errors, qualified_errors, subdomain_errors
from itbench.kube.quantity import parse_quantity

_RESTART = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_UPDATABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)

# -- defaults ------------------------------------------------------------------------------------------------------------


def default_pod_spec(spec: Obj) -> None:
    """Defaults that pods and templates share."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("securityContext", {})
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in all_containers(spec):
        default_container(container)
        if spec.get("hostNetwork"):
            for port in container.get("ports", ()):
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort", 0)
    for volume in spec.get("volumes", ()):
        default_volume(volume)


def default_template(template: Obj) -> None:
    """A pod template."""
    template.setdefault("metadata", {})
    default_pod_spec(template.setdefault("spec", {}))


def _default_pod(pod: Obj) -> None:
    spec = pod.setdefault("spec", {})
    spec.setdefault("enableServiceLinks", True)
    default_pod_spec(spec)
    for key in ("initContainers", "containers"):
        for container in spec.get(key, ()):
            default_requests(container)
    for condition in (pod.get("status") or {}).get("conditions") or ():
        condition.setdefault("lastProbeTime", None)
        condition.setdefault("lastTransitionTime", None)


def qos_class(spec: Obj) -> str:
    """Guaranteed, Burstable or BestEffort."""
    rows = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    resources = [row.get("resources") or {} for row in rows]
    asked = [
        value
        for row in resources
        for part in ("requests", "limits")
        for key, value in (row.get(part) or {}).items()
        if key in ("cpu", "memory") and parse_quantity(str(value)) > 0
    ]
    if not asked:
        return "BestEffort"
    for row in resources:
        limits, requests = row.get("limits") or {}, row.get("requests") or {}
        for key in ("cpu", "memory"):
            limit = limits.get(key)
            if limit is None or parse_quantity(str(requests.get(key, limit))) != parse_quantity(str(limit)):
                return "Burstable"
    return "Guaranteed"


def _prepare_pod(new: Obj, old: Obj | None) -> None:
    if old is None:
        status = new.setdefault("status", {})
        status["phase"] = "Pending"
        spec = {**new.get("spec", {})}
        status["qosClass"] = qos_class(spec)
        if spec.get("schedulingGates"):
            status["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": new["metadata"].get("creationTimestamp"),
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }
            ]


# -- rules ---------------------------------------------------------------------------------------------------------------


def check_pod_spec(spec: Obj, field: str, check: Check) -> None:
    """A whole pod spec, of a pod or of a template."""
    volumes = check_volumes(spec.get("volumes") or [], f"{field}.volumes", check)
    _check_containers(spec, volumes, field, check)
    check.one_of(f"{field}.restartPolicy", spec.get("restartPolicy"), _RESTART)
    check.one_of(f"{field}.dnsPolicy", spec.get("dnsPolicy"), _DNS)
    _check_dns(spec, field, check)
    check_node_selector(spec.get("nodeSelector") or {}, f"{field}.nodeSelector", check)
    _check_limits(spec, field, check)
    check_affinity(spec.get("affinity") or {}, f"{field}.affinity", check)
    check_tolerations(spec.get("tolerations") or [], f"{field}.tolerations", check)
    check_spread(spec.get("topologySpreadConstraints") or [], f"{field}.topologySpreadConstraints", check)
    _check_aliases(spec.get("hostAliases") or [], f"{field}.hostAliases", check)
    _check_gates(spec, field, check)
    for key in ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"):
        value = spec.get(key)
        if value:
            check.all_invalid(f"{field}.{key}", value, subdomain_errors(value))
    for key in ("hostname", "subdomain"):
        if spec.get(key):
            check.all_invalid(f"{field}.{key}", spec[key], label_errors(spec[key]))


def _check_containers(spec: Obj, volumes: set[str], field: str, check: Check) -> None:
    seen: set[str] = set()
    others: set[str] = set()
    containers = spec.get("containers") or []
    if not containers:
        check.required(f"{field}.containers")
    for key in ("containers", "initContainers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(key) or []):
            where = f"{field}.{key}[{index}]"
            container_name_errors(container, seen, where, check)
            if not container.get("image"):
                check.required(f"{where}.image")
            if key == "ephemeralContainers":
                check_ephemeral(container, volumes, others, where, check)
                continue
            others.add(container.get("name", ""))
            check_container(container, volumes, where, check)
            unmasked = (container.get("securityContext") or {}).get("procMount") == "Unmasked"
            if unmasked and spec.get("hostUsers") is not False:
                text = "`hostUsers` must be false to use `Unmasked`"
                check.invalid(f"{where}.securityContext.procMount", "Unmasked", text)
            sidecar = key == "initContainers" and container.get("restartPolicy") == "Always"
            if key == "containers" or sidecar:
                check_hooks(container, where, check)
            elif key == "initContainers":
                for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                    if name in container:
                        text = "may not be set for init containers without restartPolicy=Always"
                        check.forbidden(f"{where}.{name}", text)
    ports: set[tuple[Any, ...]] = set()
    for index, container in enumerate(containers):
        for at, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                taken = (port.get("protocol"), port.get("hostIP", ""), port["hostPort"])
                if taken in ports:
                    text = "/".join(str(part) for part in taken if part != "")
                    check.duplicate(f"{field}.containers[{index}].ports[{at}].hostPort", text)
                ports.add(taken)
                if spec.get("hostNetwork") and port["hostPort"] != port.get("containerPort"):
                    text = "must match `containerPort` when `hostNetwork` is true"
                    check.invalid(f"{field}.containers[{index}].ports[{at}].hostPort", port["hostPort"], text)


def _check_dns(spec: Obj, field: str, check: Check) -> None:
    config = spec.get("dnsConfig") or {}
    if spec.get("dnsPolicy") == "None" and spec.get("dnsConfig") is None:
        check.required(f"{field}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
    elif spec.get("dnsPolicy") == "None" and not config.get("nameservers"):
        check.required(
            f"{field}.dnsConfig.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None"
        )
    if len(config.get("nameservers") or ()) > 3:
        check.invalid(f"{field}.dnsConfig.nameservers", config["nameservers"], "must not have more than 3 nameservers")


def _check_aliases(rows: list[Obj], field: str, check: Check) -> None:
    for index, row in enumerate(rows):
        if not is_address(row.get("ip", "")):
            check.invalid(f"{field}[{index}].ip", row.get("ip", ""), ADDRESS_TEXT)
        for at, name in enumerate(row.get("hostnames") or ()):
            check.all_invalid(f"{field}[{index}].hostnames[{at}]", name, subdomain_errors(name))


def _check_gates(spec: Obj, field: str, check: Check) -> None:
    for index, row in enumerate(spec.get("readinessGates") or ()):
        kind = row.get("conditionType", "")
        check.all_invalid(f"{field}.readinessGates[{index}].conditionType", kind, qualified_errors(kind))
    seen: set[str] = set()
    for index, row in enumerate(spec.get("schedulingGates") or ()):
        name = row.get("name", "")
        check.all_invalid(f"{field}.schedulingGates[{index}]", name, qualified_errors(name))
        if name in seen:
            check.duplicate(f"{field}.schedulingGates[{index}]", name)
        seen.add(name)


def _check_limits(spec: Obj, field: str, check: Check) -> None:
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 0 < deadline <= 2**31 - 1:
        check.invalid(f"{field}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    context = spec.get("securityContext") or {}
    for key in ("runAsUser", "runAsGroup", "fsGroup"):
        if isinstance(context.get(key), int) and context[key] < 0:
            check.invalid(f"{field}.securityContext.{key}", context[key], "must be between 0 and 2147483647, inclusive")


def check_template(template: Obj, field: str, check: Check) -> None:
    """Labels, annotations and spec of a pod template."""
    metadata = template.get("metadata") or {}
    for value, text in labels_errors(metadata.get("labels") or {}):
        check.invalid(f"{field}.labels", value, text)
    check_pod_spec(template.get("spec") or {}, f"{field}.spec", check)
    if template.get("spec", {}).get("ephemeralContainers"):
        check.forbidden(f"{field}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def _check_pod(pod: Obj, check: Check) -> None:
    check_pod_spec(pod.get("spec") or {}, "spec", check)


def _without_images(spec: Obj, old: Obj) -> Obj:
    """The new spec with everything that may change set back to what it was."""
    out = dict(spec)
    for key in ("containers", "initContainers"):
        rows, before = spec.get(key) or [], old.get(key) or []
        if rows and len(rows) == len(before):
            out[key] = [{**row, "image": was.get("image")} for row, was in zip(rows, before, strict=True)]
    for key in ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"):
        if key in old:
            out[key] = old[key]
        else:
            out.pop(key, None)
    return out


def _check_pod_update(new: Obj, old: Obj, check: Check) -> None:
    spec, before = new["spec"], old["spec"]
    if spec == before:
        return
    if len(spec.get("containers") or ()) != len(before.get("containers") or ()):
        check.forbidden("spec.containers", "pod updates may not add or remove containers")
        return
    if len(spec.get("initContainers") or ()) != len(before.get("initContainers") or ()):
        check.forbidden("spec.initContainers", "pod updates may not add or remove containers")
        return
    _check_deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"), check)
    _check_added_tolerations(spec.get("tolerations") or [], before.get("tolerations") or [], check)
    if before.get("schedulingGates"):
        spec = _while_gated(spec, before, check)
    munged = _without_images(spec, before)
    if munged != before:
        check.forbidden("spec", f"{_UPDATABLE}\n{diff_pods(before, munged)}")


def _while_gated(spec: Obj, old: Obj, check: Check) -> Obj:
    """Pods with scheduling gates lose gates and get narrower node selectors; gives the spec with what may change set back."""
    gates = [row["name"] for row in old["schedulingGates"]]
    for index, row in enumerate(spec.get("schedulingGates") or ()):
        if row["name"] not in gates:
            text = f"only deletion is allowed, but found new scheduling gate '{row['name']}'"
            check.forbidden(f"spec.schedulingGates[{index}].name", text)
    selector, before = spec.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in before.items()):
        text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        check.invalid("spec.nodeSelector", selector, text)
    kept = {key: value for key, value in spec.items() if key not in ("nodeSelector", "schedulingGates")}
    return kept | {key: old[key] for key in ("nodeSelector", "schedulingGates") if key in old}


def _check_deadline(new: Any, old: Any, check: Check) -> None:
    if old is not None and new is None:
        check.invalid("spec.activeDeadlineSeconds", new, "must not update from a positive integer to nil value")
    elif old is not None and new > old:
        text = "must be less than or equal to previous value"
        check.invalid("spec.activeDeadlineSeconds", new, text)


def _check_added_tolerations(new: list[Obj], old: list[Obj], check: Check) -> None:
    def plain(row: Obj) -> Obj:
        return {key: value for key, value in row.items() if key != "tolerationSeconds"}

    kept = [plain(row) for row in new]
    if any(plain(row) not in kept for row in old):
        check.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


POD = Behaviour(
    default=_default_pod,
    prepare=_prepare_pod,
    validate=_check_pod,
    validate_update=_check_pod_update,
    generation=True,
)
