"""Volume claims, volumes, storage classes: defaults and rules."""

from itbench.kube.client import Obj
from itbench.kube.kinds.affinity import check_label_selector
from itbench.kube.kinds.base import Behaviour
from itbench.kube.kinds.check import Check
from itbench.kube.kinds.diff import diff_structures
from itbench.kube.names import qualified_errors, subdomain_errors
from itbench.kube.quantity import parse_quantity

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_META = ("accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy")
_NOT_SOURCES = (*_META, "storageClassName", "volumeMode", "volumeAttributesClassName")


_CLAIM_TEXT = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def _default_claim(obj: Obj) -> None:
    obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _prepare_claim(new: Obj, old: Obj | None) -> None:
    if old is None:
        new["status"] = {"phase": "Pending"}


def _prepare_volume(new: Obj, old: Obj | None) -> None:
    if old is None:
        new["status"] = {"phase": "Pending"}


def _check_modes(modes: list[str], field: str, check: Check, text: str = "") -> None:
    if not modes:
        check.required(field, text)
    for mode in modes:
        if mode not in _MODES:
            check.unsupported(field, mode, _MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        check.forbidden(field, "may not use ReadWriteOncePod with other access modes")


def _check_size(value: object, field: str, check: Check) -> None:
    if value is None:
        check.required(field)
    elif parse_quantity(str(value)) <= 0:
        check.invalid(field, str(value), "must be greater than zero")


def _check_claim(obj: Obj, check: Check) -> None:
    spec = obj["spec"]
    check_label_selector(spec.get("selector"), "spec.selector", check)
    _check_modes(spec.get("accessModes") or [], "spec.accessModes", check, "at least 1 access mode is required")
    requests = (spec.get("resources") or {}).get("requests") or {}
    _check_size(requests.get("storage"), "spec.resources[storage]", check)
    if spec.get("storageClassName"):
        check.all_invalid("spec.storageClassName", spec["storageClassName"], subdomain_errors(spec["storageClassName"]))
    check.one_of("spec.volumeMode", spec.get("volumeMode"), ("Block", "Filesystem"))


_FREE = ("volumeName", "volumeAttributesClassName")


def _check_claim_update(new: Obj, old: Obj, check: Check) -> None:
    def fixed(obj: Obj) -> Obj:
        kept = {
            key: value for key, value in obj["spec"].items() if key not in ("resources", "volumeAttributesClassName")
        }
        if not old["spec"].get("volumeName"):
            kept.pop("volumeName", None)
        if "storageClassName" not in old["spec"]:
            kept.pop("storageClassName", None)
        return kept

    def refuse() -> None:
        # Shown without what may still change: the volume's name, sizes of bound claims, the class of attributes.
        kept = {**old["spec"], **{key: new["spec"][key] for key in _FREE if key in new["spec"]}}
        text = diff_structures(kept, new["spec"], "PersistentVolumeClaimSpec")
        check.forbidden("spec", f"{_CLAIM_TEXT}\n{text}")

    if fixed(new) != fixed(old):
        refuse()
    before = ((old["spec"].get("resources") or {}).get("requests") or {}).get("storage")
    after = ((new["spec"].get("resources") or {}).get("requests") or {}).get("storage")
    if before and after and before != after:
        if old.get("status", {}).get("phase") != "Bound":
            refuse()
        elif parse_quantity(after) < parse_quantity(before):
            check.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")


def _default_volume(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    if "hostPath" in spec:
        spec["hostPath"].setdefault("type", "")


def _check_capacity(capacity: Obj, check: Check) -> None:
    if set(capacity) != {"storage"}:
        check.unsupported("spec.capacity", dict(sorted(capacity.items())), ("storage",))
    for name, value in sorted(capacity.items()):
        field = f"spec.capacity[{name}]"
        if parse_quantity(str(value)) < 0:
            check.invalid(field, int(parse_quantity(str(value))), "must be a valid resource quantity")
        _check_size(value, field, check)


def _check_volume(obj: Obj, check: Check) -> None:
    spec = obj["spec"]
    _check_modes(spec.get("accessModes") or [], "spec.accessModes", check)
    if not spec.get("capacity"):
        check.required("spec.capacity")
        check.unsupported("spec.capacity", None, ("storage",))
    else:
        _check_capacity(spec["capacity"], check)
    policy = spec.get("persistentVolumeReclaimPolicy")
    check.one_of("spec.persistentVolumeReclaimPolicy", policy, ("Delete", "Recycle", "Retain"))
    sources = [key for key in spec if key not in _NOT_SOURCES]
    if not sources:
        check.required("spec", "must specify a volume type")
    for key in sources[1:]:
        check.forbidden(f"spec.{key}", "may not specify more than 1 volume type")
    if "local" in spec and "nodeAffinity" not in spec:
        check.required("spec.nodeAffinity", "Local volume requires node affinity")
    check.one_of("spec.volumeMode", spec.get("volumeMode"), ("Block", "Filesystem"), required=False)


def _check_volume_update(new: Obj, old: Obj, check: Check) -> None:
    def source(obj: Obj) -> Obj:
        return {key: value for key, value in obj["spec"].items() if key not in _NOT_SOURCES}

    if source(new) != source(old):
        check.forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation\n")
    check.immutable("spec.volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode"))


def _default_class(obj: Obj) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _check_class(obj: Obj, check: Check) -> None:
    if not obj.get("provisioner"):
        check.required("provisioner")
    else:
        check.all_invalid("provisioner", obj["provisioner"], qualified_errors(obj["provisioner"].lower()))
    if "" in (obj.get("parameters") or {}):
        check.invalid("parameters", "", "field can not be empty.")
    check.one_of("reclaimPolicy", obj.get("reclaimPolicy"), ("Delete", "Retain"))
    check.one_of("volumeBindingMode", obj.get("volumeBindingMode"), ("Immediate", "WaitForFirstConsumer"))


def _check_class_update(new: Obj, old: Obj, check: Check) -> None:
    if (new.get("parameters") or {}) != (old.get("parameters") or {}):
        check.forbidden("parameters", "updates to parameters are forbidden.")
    if new.get("provisioner") != old.get("provisioner"):
        check.forbidden("provisioner", "updates to provisioner are forbidden.")
    if new.get("reclaimPolicy") != old.get("reclaimPolicy"):
        check.forbidden("reclaimPolicy", "updates to reclaimPolicy are forbidden.")
    check.immutable("volumeBindingMode", new.get("volumeBindingMode"), old.get("volumeBindingMode"))


CLAIM = Behaviour(
    default=_default_claim, prepare=_prepare_claim, validate=_check_claim, validate_update=_check_claim_update
)
VOLUME = Behaviour(
    default=_default_volume, prepare=_prepare_volume, validate=_check_volume, validate_update=_check_volume_update
)
STORAGECLASS = Behaviour(default=_default_class, validate=_check_class, validate_update=_check_class_update)
