"""Pod Security: the baseline and restricted levels, enforced or warned about per namespace label.

Texts are those of the real admission plugin; checks run in the order in which its message lists them.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from itbench.kube import status
from itbench.kube.admission.write import Write
from itbench.kube.client import Obj
from itbench.kube.kinds.check import Check
from itbench.kube.kinds.containers import all_containers

PREFIX = "pod-security.kubernetes.io/"
LEVELS = ("privileged", "baseline", "restricted")
_BASELINE_CAPABILITIES = frozenset(
    (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    )
)
_VOLUMES = frozenset(
    (
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    )
)
_SYSCTLS = frozenset(
    (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
    )
)
_SELINUX = frozenset(("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"))
_SECCOMP = ("RuntimeDefault", "Localhost")
_WORKLOADS = {
    "deployments.apps": ("spec", "template"),
    "replicasets.apps": ("spec", "template"),
    "statefulsets.apps": ("spec", "template"),
    "daemonsets.apps": ("spec", "template"),
    "replicationcontrollers": ("spec", "template"),
    "jobs.batch": ("spec", "template"),
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template"),
}


def _context(row: Obj) -> Obj:
    return row.get("securityContext") or {}


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _named(word: str, names: list[str]) -> str:
    return f"{word}{'' if len(names) == 1 else 's'} {_quoted(names)}"


def _escalation(spec: Obj) -> str:
    names = [row["name"] for row in all_containers(spec) if _context(row).get("allowPrivilegeEscalation") is not False]
    if not names:
        return ""
    what = "must set securityContext.allowPrivilegeEscalation=false"
    return f"allowPrivilegeEscalation != false ({_named('container', names)} {what})"


def _added(spec: Obj, allowed: Iterable[str]) -> tuple[list[str], list[str]]:
    names: list[str] = []
    extra: set[str] = set()
    for row in all_containers(spec):
        found = [name for name in (_context(row).get("capabilities") or {}).get("add") or () if name not in allowed]
        if found:
            names.append(row["name"])
            extra.update(found)
    return names, sorted(extra)


def _capabilities(spec: Obj) -> str:
    names, extra = _added(spec, _BASELINE_CAPABILITIES)
    if not names:
        return ""
    where = "securityContext.capabilities.add"
    return f"non-default capabilities ({_named('container', names)} must not include {_quoted(extra)} in {where})"


def _restricted_capabilities(spec: Obj) -> str:
    kept = [
        row["name"]
        for row in all_containers(spec)
        if "ALL" not in ((_context(row).get("capabilities") or {}).get("drop") or ())
    ]
    names, extra = _added(spec, ("NET_BIND_SERVICE",))
    parts = []
    if kept:
        parts.append(f'{_named("container", kept)} must set securityContext.capabilities.drop=["ALL"]')
    if names:
        where = "securityContext.capabilities.add"
        parts.append(f"{_named('container', names)} must not include {_quoted(extra)} in {where}")
    return f"unrestricted capabilities ({'; '.join(parts)})" if parts else ""


def _host_namespaces(spec: Obj) -> str:
    found = [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    return f"host namespaces ({', '.join(found)})" if found else ""


def _host_paths(spec: Obj) -> str:
    names = [row["name"] for row in spec.get("volumes") or () if "hostPath" in row]
    return f"hostPath volumes ({_named('volume', names)})" if names else ""


def _host_ports(spec: Obj) -> str:
    names, ports = [], []
    for row in all_containers(spec):
        found = [str(port["hostPort"]) for port in row.get("ports") or () if port.get("hostPort")]
        if found:
            names.append(row["name"])
            ports += found
    if not names:
        return ""
    verb = "uses" if len(names) == 1 else "use"
    word = "hostPort" if len(ports) == 1 else "hostPorts"
    return f"hostPort ({_named('container', names)} {verb} {word} {', '.join(sorted(set(ports)))})"


def _privileged(spec: Obj) -> str:
    names = [row["name"] for row in all_containers(spec) if _context(row).get("privileged")]
    return f"privileged ({_named('container', names)} must not set securityContext.privileged=true)" if names else ""


def _proc_mount(spec: Obj) -> str:
    rows = [row for row in all_containers(spec) if _context(row).get("procMount") not in (None, "Default")]
    if not rows:
        return ""
    kinds = _quoted(sorted({_context(row)["procMount"] for row in rows}))
    return f"procMount ({_named('container', [row['name'] for row in rows])} must not set securityContext.procMount to {kinds})"


def _volume_types(spec: Obj) -> str:
    names, kinds = [], set()
    for row in spec.get("volumes") or ():
        bad = [key for key in row if key != "name" and key not in _VOLUMES]
        if bad:
            names.append(row["name"])
            kinds.update(bad)
    if not names:
        return ""
    verb, word = ("uses", "type") if len(names) == 1 else ("use", "types" if len(kinds) > 1 else "type")
    return (
        f"restricted volume types ({_named('volume', names)} {verb} restricted volume {word} {_quoted(sorted(kinds))})"
    )


def _non_root(spec: Obj) -> str:
    pod = _context(spec).get("runAsNonRoot")
    explicit = [row["name"] for row in all_containers(spec) if _context(row).get("runAsNonRoot") is False]
    unset = [row["name"] for row in all_containers(spec) if _context(row).get("runAsNonRoot") is None]
    parts = []
    if pod is False:
        parts.append("pod")
    if explicit:
        parts.append(_named("container", explicit))
    if parts:
        return f"runAsNonRoot != true ({' and '.join(parts)} must not set securityContext.runAsNonRoot=false)"
    if pod is None and unset:
        return f"runAsNonRoot != true (pod or {_named('container', unset)} must set securityContext.runAsNonRoot=true)"
    return ""


def _run_as_user(spec: Obj) -> str:
    names = [row["name"] for row in all_containers(spec) if _context(row).get("runAsUser") == 0]
    parts = ["pod"] if _context(spec).get("runAsUser") == 0 else []
    if names:
        parts.append(_named("container", names))
    return f"runAsUser=0 ({' and '.join(parts)} must not set runAsUser=0)" if parts else ""


def _selinux(spec: Obj) -> str:
    bad = [
        row
        for row in (spec, *all_containers(spec))
        if (options := _context(row).get("seLinuxOptions"))
        and (options.get("type", "") not in _SELINUX or options.get("user") or options.get("role"))
    ]
    if not bad:
        return ""
    names = [row["name"] for row in bad if row is not spec]
    parts = (["pod"] if any(row is spec for row in bad) else []) + ([_named("container", names)] if names else [])
    options = [_context(row)["seLinuxOptions"] for row in bad]
    kinds = sorted({row["type"] for row in options if row.get("type", "") not in _SELINUX})
    what = [f"type{'s' if len(kinds) > 1 else ''} {_quoted(kinds)}"] if kinds else []
    what += ["user may not be set"] if any(row.get("user") for row in options) else []
    what += ["role may not be set"] if any(row.get("role") for row in options) else []
    return f"seLinuxOptions ({' and '.join(parts)} set forbidden securityContext.seLinuxOptions: {'; '.join(what)})"


def _seccomp(spec: Obj) -> str:
    bad = [
        row
        for row in (spec, *all_containers(spec))
        if (_context(row).get("seccompProfile") or {}).get("type", "RuntimeDefault") not in _SECCOMP
    ]
    if not bad:
        return ""
    names = [row["name"] for row in bad if row is not spec]
    parts = (["pod"] if any(row is spec for row in bad) else []) + ([_named("container", names)] if names else [])
    kinds = _quoted(sorted({_context(row)["seccompProfile"]["type"] for row in bad}))
    return f"seccompProfile ({' and '.join(parts)} must not set securityContext.seccompProfile.type to {kinds})"


def _restricted_seccomp(spec: Obj) -> str:
    explicit = _seccomp(spec)
    if explicit:
        return explicit
    if (_context(spec).get("seccompProfile") or {}).get("type") in _SECCOMP:
        return ""
    names = [row["name"] for row in all_containers(spec) if not (_context(row).get("seccompProfile") or {}).get("type")]
    if not names:
        return ""
    where = 'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return f"seccompProfile (pod or {_named('container', names)} must set {where})"


def _sysctls(spec: Obj) -> str:
    names = [row["name"] for row in _context(spec).get("sysctls") or () if row["name"] not in _SYSCTLS]
    return f"forbidden sysctls ({', '.join(names)})" if names else ""


def _app_armor(spec: Obj) -> str:
    bad = [
        row
        for row in (spec, *all_containers(spec))
        if (_context(row).get("appArmorProfile") or {}).get("type", "RuntimeDefault") not in _SECCOMP
    ]
    if not bad:
        return ""
    kinds = _quoted(sorted({_context(row)["appArmorProfile"]["type"] for row in bad}))
    return f"forbidden AppArmor profile ({_setters(spec, bad)} must not set AppArmor profile type to {kinds})"


def _setters(spec: Obj, bad: list[Obj]) -> str:
    """The pod, its containers, or both."""
    names = [row["name"] for row in bad if row is not spec]
    parts = (["pod"] if any(row is spec for row in bad) else []) + ([_named("container", names)] if names else [])
    return " and ".join(parts)


def _handlers(container: Obj) -> Iterator[Obj]:
    for key in ("livenessProbe", "readinessProbe", "startupProbe"):
        yield container.get(key) or {}
    for key in ("postStart", "preStop"):
        yield (container.get("lifecycle") or {}).get(key) or {}


def _probe_hosts(spec: Obj) -> str:
    names, hosts = [], []
    for row in all_containers(spec):
        actions = [handler.get(key) or {} for handler in _handlers(row) for key in ("httpGet", "tcpSocket")]
        found = [action["host"] for action in actions if action.get("host")]
        if found:
            names.append(row["name"])
            hosts += found
    if not names:
        return ""
    verb = "uses" if len(names) == 1 else "use"
    kinds = sorted(set(hosts))
    word = "probe or lifecycle host" + ("s" if len(kinds) > 1 else "")
    return f"probe or lifecycle host ({_named('container', names)} {verb} {word} {_quoted(kinds)})"


def _host_process(spec: Obj) -> str:
    bad = [
        row for row in (spec, *all_containers(spec)) if (_context(row).get("windowsOptions") or {}).get("hostProcess")
    ]
    what = "must not set securityContext.windowsOptions.hostProcess=true"
    return f"hostProcess ({_setters(spec, bad)} {what})" if bad else ""


Rule = Callable[[Obj], str]
_BASELINE: tuple[Rule, ...] = (
    _app_armor,
    _capabilities,
    _host_namespaces,
    _host_paths,
    _host_ports,
    _probe_hosts,
    _privileged,
    _proc_mount,
    _selinux,
    _seccomp,
    _sysctls,
    _host_process,
)
_RESTRICTED: tuple[Rule, ...] = (
    _escalation,
    _restricted_capabilities,
    _volume_types,
    _non_root,
    _run_as_user,
    _restricted_seccomp,
)
_OVERRIDDEN = (_capabilities, _host_paths, _seccomp)
"""Baseline rules that a restricted one covers."""
_RULES = {"baseline": _BASELINE, "restricted": (*(rule for rule in _BASELINE if rule not in _OVERRIDDEN), *_RESTRICTED)}


_SINCE: dict[Rule, int] = {_probe_hosts: 34}
"""The minor version of the policy with which a rule came."""
_NOT_ON_WINDOWS = frozenset({_escalation, _restricted_capabilities, _restricted_seccomp})
_MODES = ("enforce", "audit", "warn")
_VERSION = re.compile(r"latest|v1\.(0|[1-9]\d*)")


def violations(level: str, spec: Obj, version: str = "latest") -> list[str]:
    """What a pod spec does that a level (as of a version, such as `v1.25`) forbids."""
    minor = int(version.partition(".")[2] or 0) if version != "latest" else 1000
    windows = (spec.get("os") or {}).get("name") == "windows" and minor >= 25
    rules = [
        rule
        for rule in _RULES.get(level, ())
        if _SINCE.get(rule, 0) <= minor and not (windows and rule in _NOT_ON_WINDOWS)
    ]
    return [text for rule in rules if (text := rule(spec))]


@dataclass(frozen=True, slots=True)
class Policy:
    """Level and version of one mode."""

    level: str
    version: str

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    def violations(self, spec: Obj) -> list[str]:
        """What a pod spec does that the policy forbids."""
        return violations(self.level, spec, self.version)


def policy_of(namespace: Obj, mode: str) -> Policy:
    """The policy that a namespace's labels set for `enforce`, `warn` or `audit`."""
    labels = namespace["metadata"].get("labels") or {}
    if mode == "warn" and PREFIX + mode not in labels:
        mode = "enforce"  # what would be refused as a pod is warned about in templates
    return Policy(labels.get(PREFIX + mode, "privileged"), labels.get(f"{PREFIX}{mode}-version", "latest"))


def _template(write: Write) -> Obj | None:
    obj: Obj | None = write.object
    for key in _WORKLOADS[write.key]:
        obj = (obj or {}).get(key)
    return obj


def pod_security(write: Write) -> None:
    """Refuse pods that the namespace's level forbids, warn about pods and templates."""
    if write.subresource not in ("", "ephemeralcontainers") or write.operation not in ("CREATE", "UPDATE"):
        return
    if write.key == "namespaces":
        _check_namespace(write)
        return
    if write.key != "pods" and write.key not in _WORKLOADS:
        return
    if write.old is not None and write.old.get("spec") == write.object.get("spec"):
        return
    namespace = write.store.get("namespaces", "", write.namespace)
    if namespace is None:
        return
    template = write.object if write.key == "pods" else _template(write)
    spec = (template or {}).get("spec") or {}
    if write.key == "pods":
        enforce = policy_of(namespace.object, "enforce")
        found = enforce.violations(spec)
        if found:
            text = f'violates PodSecurity "{enforce}": {", ".join(found)}'
            raise status.forbidden(write.resource, write.name, text)
    audit = policy_of(namespace.object, "audit")
    if found := audit.violations(spec):
        write.notes.append(f'{PREFIX}audit-violations: would violate PodSecurity "{audit}": {", ".join(found)}')
    warn = policy_of(namespace.object, "warn")
    found = warn.violations(spec)
    if found:
        write.warnings.append(f'would violate PodSecurity "{warn}": {", ".join(found)}')


def _check_namespace(write: Write) -> None:
    """Refuse labels that say nothing; warn about pods that a stricter level would refuse."""
    _check_labels(write)
    new = policy_of(write.object, "enforce")
    if write.old is None or new == policy_of(write.old, "enforce"):
        return
    bad = list(_existing(write, new))
    if bad:
        write.warnings.append(
            f'existing pods in namespace "{write.name}" violate the new PodSecurity enforce level "{new}"'
        )
        write.warnings.extend(bad)


def _check_labels(write: Write) -> None:
    labels = write.object["metadata"].get("labels") or {}
    known = ((write.old or {}).get("metadata") or {}).get("labels") or {}
    check = Check()
    for mode in _MODES:
        level, version = labels.get(PREFIX + mode), labels.get(f"{PREFIX}{mode}-version")
        if level is not None and level not in LEVELS and level != known.get(PREFIX + mode):
            text = f"must be one of {', '.join(LEVELS)}"
            check.invalid(f"metadata.labels[{PREFIX}{mode}]", level, text)
        if version is not None and not _VERSION.fullmatch(version) and version != known.get(f"{PREFIX}{mode}-version"):
            check.invalid(f"metadata.labels[{PREFIX}{mode}-version]", version, 'must be "latest" or "v1.x"')
    if check:
        raise status.invalid("Namespace", "", write.name, check.causes)


def _existing(write: Write, policy: Policy) -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for entry in write.store.list("pods", write.name):
        found = policy.violations(entry.object["spec"])
        if found:
            texts = ", ".join(text.split(" (")[0] for text in found)
            groups.setdefault(texts, []).append(entry.name)
    for texts, names in groups.items():
        others = len(names) - 1
        tail = f" (and {others} other pod{'s' if others > 1 else ''})" if others else ""
        yield f"{names[0]}{tail}: {texts}"
