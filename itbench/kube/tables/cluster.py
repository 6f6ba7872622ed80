"""Rows of nodes, namespaces, configuration, storage, RBAC, policies, events."""

from itbench.kube.client import Obj
from itbench.kube.tables.cells import NONE, UNKNOWN, UNSET, Age, Cells, age, labels_text, moment, words

_ROLE, _ROLE_LABEL = "node-role.kubernetes.io/", "kubernetes.io/role"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def _name(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def _node_status(obj: Obj) -> str:
    known = {row["type"]: row["status"] for row in (obj.get("status") or {}).get("conditions") or ()}
    state = {"True": "Ready", None: "Unknown"}.get(known.get("Ready"), "NotReady")
    return f"{state},SchedulingDisabled" if (obj.get("spec") or {}).get("unschedulable") else state


def _roles(labels: Obj) -> str:
    rows = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE) and key != _ROLE}
    if labels.get(_ROLE_LABEL):
        rows.add(labels[_ROLE_LABEL])
    return ",".join(sorted(rows)) or NONE


def node(obj: Obj) -> Cells:
    """State, roles, version, addresses, software."""
    status = obj.get("status") or {}
    info = status.get("nodeInfo") or {}
    addresses = {row["type"]: row["address"] for row in reversed(status.get("addresses") or [])}
    return [
        _name(obj),
        _node_status(obj),
        _roles(obj["metadata"].get("labels") or {}),
        age(obj),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def namespace(obj: Obj) -> Cells:
    """Phase."""
    return [_name(obj), (obj.get("status") or {}).get("phase", ""), age(obj)]


def configmap(obj: Obj) -> Cells:
    """Number of keys."""
    return [_name(obj), len(obj.get("data") or {}) + len(obj.get("binaryData") or {}), age(obj)]


def secret(obj: Obj) -> Cells:
    """Type and number of keys."""
    return [_name(obj), obj.get("type", ""), len(obj.get("data") or {}), age(obj)]


def serviceaccount(obj: Obj) -> Cells:
    """Number of secrets."""
    return [_name(obj), len(obj.get("secrets") or ()), age(obj)]


def event(obj: Obj) -> Cells:
    """Last seen, object, message."""
    series, about = obj.get("series") or {}, obj.get("involvedObject") or {}
    first = moment(obj.get("firstTimestamp") or obj.get("eventTime"))
    seen = moment(series.get("lastObservedTime") or obj.get("lastTimestamp"))
    last = first if seen is None else seen
    source = obj.get("source") or {}
    origin = words(part for part in (source.get("component"), source.get("host")) if part)
    count = series.get("count") or obj.get("count") or 1
    return [
        Age(last),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        about.get("fieldPath", ""),
        origin or obj.get("reportingComponent", ""),
        (obj.get("message") or "").strip(),
        Age(first),
        count,
        _name(obj),
    ]


def _access(modes: list[str] | None) -> str:
    return ",".join(_MODES[mode] for mode in _MODES if mode in (modes or ()))


def claim(obj: Obj) -> Cells:
    """Phase, volume, capacity."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    bound = spec.get("volumeName", "")
    phase = "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", "")
    size = (status.get("capacity") or {}).get("storage", "0") if bound else ""
    modes = _access(status.get("accessModes")) if bound else ""
    classes = [spec.get("storageClassName") or "", spec.get("volumeAttributesClassName") or UNSET]
    return [_name(obj), phase, bound, size, modes, *classes, age(obj), spec.get("volumeMode") or UNSET]


def volume(obj: Obj) -> Cells:
    """Capacity, policy, claim."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    ref = spec.get("claimRef") or {}
    phase = "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", "")
    return [
        _name(obj),
        (spec.get("capacity") or {}).get("storage", ""),
        _access(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase,
        f"{ref['namespace']}/{ref['name']}" if ref else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or UNSET,
        status.get("reason", ""),
        age(obj),
        spec.get("volumeMode") or UNSET,
    ]


def storageclass(obj: Obj) -> Cells:
    """Provisioner and modes."""
    default = (obj["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    row = [obj.get("provisioner", ""), obj.get("reclaimPolicy", ""), obj.get("volumeBindingMode", "")]
    return [_name(obj) + (" (default)" if default else ""), *row, bool(obj.get("allowVolumeExpansion")), age(obj)]


def binding(obj: Obj) -> Cells:
    """Role and subjects."""
    ref = obj.get("roleRef") or {}
    rows = obj.get("subjects") or ()
    users = words(row["name"] for row in rows if row["kind"] == "User")
    groups = words(row["name"] for row in rows if row["kind"] == "Group")
    accounts = words(f"{row.get('namespace', '')}/{row['name']}" for row in rows if row["kind"] == "ServiceAccount")
    return [_name(obj), f"{ref.get('kind', '')}/{ref.get('name', '')}", age(obj), users, groups, accounts]


def budget(obj: Obj) -> Cells:
    """Bounds and what is left."""
    spec = obj.get("spec") or {}
    low, high = spec.get("minAvailable"), spec.get("maxUnavailable")
    row = ["N/A" if low is None else str(low), "N/A" if high is None else str(high)]
    return [_name(obj), *row, (obj.get("status") or {}).get("disruptionsAllowed", 0), age(obj)]


def quota(obj: Obj) -> Cells:
    """Used and hard, requests and limits apart."""
    status = obj.get("status") or {}
    hard = status.get("hard") or (obj.get("spec") or {}).get("hard") or {}
    used = status.get("used") or {}
    rows = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = words(text for name, text in rows.items() if name.startswith("limits"))
    return [_name(obj), words(text for name, text in rows.items() if not name.startswith("limits")), limits, age(obj)]


def priorityclass(obj: Obj) -> Cells:
    """Value and default."""
    default = bool(obj.get("globalDefault"))
    return [_name(obj), obj.get("value", 0), default, age(obj), obj.get("preemptionPolicy", "")]


def lease(obj: Obj) -> Cells:
    """Holder."""
    return [_name(obj), (obj.get("spec") or {}).get("holderIdentity") or "", age(obj)]


def webhooks(obj: Obj) -> Cells:
    """Number of webhooks."""
    return [_name(obj), len(obj.get("webhooks") or ()), age(obj)]


def policy(obj: Obj) -> Cells:
    """A ValidatingAdmissionPolicy."""
    spec = obj.get("spec") or {}
    kind = spec.get("paramKind")
    text = f"{kind['apiVersion']}/{kind['kind']}" if kind else UNSET
    return [_name(obj), len(spec.get("validations") or ()), text, age(obj)]


def policybinding(obj: Obj) -> Cells:
    """A ValidatingAdmissionPolicyBinding."""
    spec = obj.get("spec") or {}
    ref = spec.get("paramRef")
    text = UNSET
    if ref:
        text = ref.get("name") or labels_text((ref.get("selector") or {}).get("matchLabels"))
        text = f"{ref['namespace']}/{text}" if ref.get("namespace") else f"*/{text}"
    return [_name(obj), spec.get("policyName", ""), text, age(obj)]


def runtimeclass(obj: Obj) -> Cells:
    """Handler."""
    return [_name(obj), obj.get("handler", ""), age(obj)]


def apiservice(obj: Obj) -> Cells:
    """Service and availability."""
    ref = (obj.get("spec") or {}).get("service")
    rows = (obj.get("status") or {}).get("conditions") or ()
    row = next((row for row in rows if row["type"] == "Available"), None)
    state = UNKNOWN
    if row is not None:
        state = row["status"] if row["status"] == "True" else f"{row['status']} ({row.get('reason', '')})"
    return [_name(obj), f"{ref['namespace']}/{ref['name']}" if ref else "Local", state, age(obj)]
