"""Deployments, ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers: defaults and rules."""

from typing import Any

from itbench.kube.client import Obj
from itbench.kube.kinds.affinity import check_label_selector
from itbench.kube.kinds.base import Behaviour
from itbench.kube.kinds.check import Check
from itbench.kube.kinds.pods import check_template, default_template
from itbench.kube.names import label_value_errors
from itbench.kube.selectors import is_valid, matches

_QUARTER = "25%"
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_MISMATCH = "`selector` does not match template `labels`"

# -- defaults ------------------------------------------------------------------------------------------------------------


def _spec(obj: Obj) -> Obj:
    spec: Obj = obj.setdefault("spec", {})
    default_template(spec.setdefault("template", {}))
    return spec


def _default_deployment(obj: Obj) -> None:
    spec = _spec(obj)
    for key, value in (("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)):
        spec.setdefault(key, value)
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxSurge", _QUARTER)
        rolling.setdefault("maxUnavailable", _QUARTER)


def _default_replicaset(obj: Obj) -> None:
    spec = _spec(obj)
    spec.setdefault("replicas", 1)


def _default_controller(obj: Obj) -> None:
    _default_replicaset(obj)
    labels = (obj["spec"]["template"].get("metadata") or {}).get("labels")
    if labels and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)
    if labels and not obj["spec"].get("selector"):
        obj["spec"]["selector"] = dict(labels)


def _default_statefulset(obj: Obj) -> None:
    spec = _spec(obj)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    for claim in spec.get("volumeClaimTemplates", ()):
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim.setdefault("status", {}).setdefault("phase", "Pending")


def _prepare_statefulset(new: Obj, old: Obj | None) -> None:
    new["spec"].setdefault("serviceName", "")


def _default_daemonset(obj: Obj) -> None:
    spec = _spec(obj)
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    annotations = obj["metadata"].setdefault("annotations", {})
    annotations.setdefault(_TEMPLATE_GENERATION, "1")


def _prepare_daemonset(new: Obj, old: Obj | None) -> None:
    annotations = new["metadata"].setdefault("annotations", {})
    if old is None:
        annotations[_TEMPLATE_GENERATION] = "1"
        return
    before = (old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "1")
    changed = new["spec"]["template"] != old["spec"]["template"]
    annotations[_TEMPLATE_GENERATION] = str(int(before) + 1) if changed else before


# -- rules ---------------------------------------------------------------------------------------------------------------


def check_int_or_percent(value: Any, field: str, check: Check) -> None:
    """A non-negative number or a percentage."""
    if isinstance(value, str):
        if not value.endswith("%") or not value[:-1].isdigit():
            check.invalid(
                field,
                value,
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
                "regex used for validation is '[0-9]+%')",
            )
    else:
        check.non_negative(field, value)


def _percent(value: Any) -> int | None:
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdigit():
        return int(value[:-1])
    return None


def _is_zero(value: Any) -> bool:
    return value == 0 or _percent(value) == 0


def _over_100(value: Any, field: str, check: Check) -> None:
    percent = _percent(value)
    if percent is not None and percent > 100:
        check.invalid(field, value, "must not be greater than 100%")


def _check_rolling(rolling: Obj, field: str, check: Check) -> None:
    surge, unavailable = rolling.get("maxSurge", 0), rolling.get("maxUnavailable", 0)
    check_int_or_percent(unavailable, f"{field}.maxUnavailable", check)
    check_int_or_percent(surge, f"{field}.maxSurge", check)
    if _is_zero(surge) and _is_zero(unavailable):
        check.invalid(f"{field}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    _over_100(unavailable, f"{field}.maxUnavailable", check)


def _check_labels_match(spec: Obj, check: Check) -> bool:
    """Says whether the selector is one: otherwise the template is not looked at."""
    selector = spec.get("selector")
    labels = (spec.get("template", {}).get("metadata") or {}).get("labels")
    if selector is not None and not is_valid(selector):
        check.invalid("spec.selector", selector, "invalid label selector")
        return False
    if any(label_value_errors(value) for value in ((selector or {}).get("matchLabels") or {}).values()):
        check.invalid("spec.selector", selector, "invalid label selector")
        return False
    if selector is None or (not matches(selector, labels)):
        check.invalid("spec.template.metadata.labels", labels, _MISMATCH)
    return True


def _check_restart(spec: Obj, check: Check) -> None:
    policy = spec["template"]["spec"].get("restartPolicy")
    if policy != "Always":
        check.unsupported("spec.template.spec.restartPolicy", policy, ("Always",))
    if spec["template"]["spec"].get("activeDeadlineSeconds") is not None:
        check.forbidden(
            "spec.template.spec.activeDeadlineSeconds", "activeDeadlineSeconds in ReplicaSet is not Supported"
        )


def _empty_selector(selector: Obj | None, kind: str, check: Check) -> bool:
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        check.invalid("spec.selector", selector, f"empty selector is invalid for {kind}")
        return True
    return False


def _check_deployment(obj: Obj, check: Check) -> None:
    spec = obj["spec"]
    check.non_negative("spec.replicas", spec.get("replicas"))
    if spec.get("selector") is None:
        check.required("spec.selector")
    else:
        check_label_selector(spec["selector"], "spec.selector", check)
        _empty_selector(spec["selector"], "deployment", check)
    if _check_labels_match(spec, check):
        check_template(spec["template"], "spec.template", check)
        _check_restart(spec, check)
    _check_strategy(spec.get("strategy") or {}, check)
    for key in ("minReadySeconds", "revisionHistoryLimit"):
        check.non_negative(f"spec.{key}", spec.get(key))
    deadline = spec.get("progressDeadlineSeconds")
    if isinstance(deadline, int):
        check.non_negative("spec.progressDeadlineSeconds", deadline)
        if deadline <= spec.get("minReadySeconds", 0):
            check.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _check_strategy(strategy: Obj, check: Check) -> None:
    kind = strategy.get("type")
    if kind == "Recreate":
        if "rollingUpdate" in strategy:
            text = "may not be specified when strategy `type` is 'Recreate'"
            check.forbidden("spec.strategy.rollingUpdate", text)
    elif kind == "RollingUpdate":
        if "rollingUpdate" not in strategy:
            check.required("spec.strategy.rollingUpdate", "this should be defaulted and never be nil")
        else:
            _check_rolling(strategy["rollingUpdate"], "spec.strategy.rollingUpdate", check)
    else:
        shown = {"Type": kind, "RollingUpdate": strategy.get("rollingUpdate")}
        check.unsupported("spec.strategy", shown, ("Recreate", "RollingUpdate"))


def _check_replicaset(obj: Obj, check: Check) -> None:
    spec = obj["spec"]
    check.non_negative("spec.replicas", spec.get("replicas"))
    check.non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    if spec.get("selector") is None:
        check.required("spec.selector")
    else:
        check_label_selector(spec["selector"], "spec.selector", check)
        _empty_selector(spec["selector"], "deployment", check)
    if _check_labels_match(spec, check):
        check_template(spec["template"], "spec.template", check)
        _check_restart(spec, check)


def _check_controller(obj: Obj, check: Check) -> None:
    spec = obj["spec"]
    check.non_negative("spec.replicas", spec.get("replicas"))
    if not spec.get("selector"):
        check.required("spec.selector")
    labels = (spec["template"].get("metadata") or {}).get("labels")
    if spec.get("selector") and not matches({"matchLabels": spec["selector"]}, labels):
        check.invalid("spec.template.metadata.labels", labels, _MISMATCH)
    if not spec["template"].get("metadata") and not spec["template"].get("spec", {}).get("containers"):
        check.required("spec.template")
        return
    check_template(spec["template"], "spec.template", check)
    _check_restart(spec, check)


def _check_statefulset(obj: Obj, check: Check) -> None:
    spec = obj["spec"]
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        check.invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") not in ("RollingUpdate", "OnDelete"):
        shown = {"Type": strategy.get("type"), "RollingUpdate": strategy.get("rollingUpdate")}
        check.invalid("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'")
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "OnDelete" and rolling is not None:
        shown = {"Partition": rolling.get("partition"), "MaxUnavailable": rolling.get("maxUnavailable")}
        check.invalid("spec.updateStrategy.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")
    check.non_negative(
        "spec.updateStrategy.rollingUpdate.partition", (strategy.get("rollingUpdate") or {}).get("partition")
    )
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for key in ("whenDeleted", "whenScaled"):
        check.one_of(
            f"spec.persistentVolumeClaimRetentionPolicy.{key}", retention.get(key), ("Retain", "Delete"), required=False
        )
    check.non_negative("spec.replicas", spec.get("replicas"))
    check.non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    check.non_negative("spec.ordinals.start", (spec.get("ordinals") or {}).get("start"))
    if spec.get("selector") is None:
        check.required("spec.selector")
    else:
        check_label_selector(spec["selector"], "spec.selector", check)
        _empty_selector(spec["selector"], "statefulset", check)
    _check_labels_match(spec, check)
    names = [
        {"name": row["metadata"]["name"]}
        for row in spec.get("volumeClaimTemplates", ())
        if row.get("metadata", {}).get("name")
    ]
    template = spec["template"]
    if names:
        pod = template.get("spec", {})
        held = {row["name"] for row in names}
        kept = [row for row in pod.get("volumes", ()) if row.get("name") not in held]
        claims = [{**row, "emptyDir": {}} for row in names]
        template = {**template, "spec": {**pod, "volumes": [*kept, *claims]}}
    check_template(template, "spec.template", check)
    _check_restart(spec, check)


def _check_daemonset(obj: Obj, check: Check) -> None:
    spec = obj["spec"]
    check_label_selector(spec.get("selector"), "spec.selector", check)
    _check_labels_match(spec, check)
    _empty_selector(spec.get("selector"), "daemonset", check)
    check_template(spec["template"], "spec.template", check)
    _check_restart(spec, check)
    check.non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    strategy = spec.get("updateStrategy") or {}
    check.one_of("spec.updateStrategy.type", strategy.get("type"), ("RollingUpdate", "OnDelete"))
    rolling = strategy.get("rollingUpdate") or {}
    if rolling:
        surge, unavailable = rolling.get("maxSurge", 0), rolling.get("maxUnavailable", 0)
        where = "spec.updateStrategy.rollingUpdate"
        check_int_or_percent(unavailable, f"{where}.maxUnavailable", check)
        check_int_or_percent(surge, f"{where}.maxSurge", check)
        if _is_zero(surge) and _is_zero(unavailable):
            check.required(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0")
        if not _is_zero(surge) and not _is_zero(unavailable):
            check.invalid(f"{where}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    check.non_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))


def _check_same_selector(new: Obj, old: Obj, check: Check) -> None:
    check.immutable("spec.selector", new["spec"].get("selector"), old["spec"].get("selector"))


def _check_same_selector_first(new: Obj, old: Obj, check: Check) -> None:
    """Daemon sets: this is looked at before all else."""
    own = Check()
    _check_same_selector(new, old, own)
    check.causes[:0] = own.causes


_STATEFULSET_MUTABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def _check_statefulset_update(new: Obj, old: Obj, check: Check) -> None:
    def fixed(obj: Obj) -> Obj:
        return {key: value for key, value in obj["spec"].items() if key not in _STATEFULSET_MUTABLE}

    if fixed(new) != fixed(old):
        names = ", ".join(f"'{name}'" for name in _STATEFULSET_MUTABLE[:-1])
        text = f"updates to statefulset spec for fields other than {names} and 'minReadySeconds' are forbidden"
        check.forbidden("spec", text)


DEPLOYMENT = Behaviour(
    default=_default_deployment, validate=_check_deployment, validate_update=_check_same_selector, generation=True
)
REPLICASET = Behaviour(
    default=_default_replicaset, validate=_check_replicaset, validate_update=_check_same_selector, generation=True
)
STATEFULSET = Behaviour(
    default=_default_statefulset,
    prepare=_prepare_statefulset,
    validate=_check_statefulset,
    validate_update=_check_statefulset_update,
    generation=True,
)
DAEMONSET = Behaviour(
    default=_default_daemonset,
    prepare=_prepare_daemonset,
    validate=_check_daemonset,
    validate_update=_check_same_selector_first,
    generation=True,
)
CONTROLLER = Behaviour(default=_default_controller, validate=_check_controller, generation=True)
