"""Checks on the estate: `alerts`, `state` (CEL over the settled objects), `collateral` (what else the agent changed)."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from itbench.core.documents.result import EVIDENCE, Snapshot, Write
from itbench.core.documents.vocabulary import canonical_entity, canonical_kind
from itbench.engines.cel import over_objects, problem
from itbench.evaluate.registry import Case, Finding, Spec, check
from itbench.evaluate.weaker import weaker
from itbench.kube.audit import only_asks
from itbench.kube.snapshots import compare

Obj = dict[str, Any]

PROTECTED = (
    "service",
    "networkpolicy",
    "resourcequota",
    "limitrange",
    "poddisruptionbudget",
    "prometheusrule",
    "role",
    "rolebinding",
    "clusterrole",
    "clusterrolebinding",
    "validatingwebhookconfiguration",
    "mutatingwebhookconfiguration",
    "namespace",
    "node",
)
"""Kinds that nobody on call changes in passing: probes of health and of policy, and what others rely on."""
ACTORS = ("cronjobs.batch", "*.chaos-mesh.org")
"""Resources that act on their own: one that an agent leaves behind can undo tomorrow what is graded today."""
UNCOUNTED = ("event", "lease", "selfsubjectaccessreview", "selfsubjectrulesreview", "selfsubjectreview", "tokenreview")


class AlertsSpec(Spec):
    """Alerts must be back to what they were at the baseline."""

    clear: Literal[True] = True
    except_: tuple[str, ...] = ()

    model_config = Spec.model_config | {"alias_generator": lambda name: name.rstrip("_")}


def _compiles(expression: str) -> str:
    why = problem(expression, EVIDENCE)
    if why:
        raise ValueError(f"no CEL over the objects of the estate: {why}")
    return expression


class StateSpec(Spec):
    """A CEL expression over the settled objects."""

    value: Annotated[str, AfterValidator(_compiles)]
    why: str = ""


class CollateralSpec(Spec):
    """Changes outside the root causes and `allow` (patterns of entities, `*` as wildcard).

    `protect`: further entities whose change always fails. `strict`: any such change fails (no-fault rows).
    """

    allow: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    strict: bool | None = None


def _key(alert: dict[str, object]) -> str:
    labels = alert.get("labels", {})
    return str(sorted(labels.items())) if isinstance(labels, dict) else str(labels)


@check("alerts", AlertsSpec, answer="mitigation")
def grade_alerts(spec: AlertsSpec, case: Case) -> Finding:
    """No rule fires after settling that did not fire at the baseline; silences and routes are not looked at."""
    settled = case.evidence.snapshots.get("settled")
    baseline = case.evidence.snapshots.get("baseline", Snapshot(t=0.0))
    wanted = "no alert beyond those of the baseline" + (f" (except {', '.join(spec.except_)})" if spec.except_ else "")
    if settled is None:
        return Finding(False, wanted, "no snapshot after settling", "snapshots.settled.alerts")
    before = {_key(alert) for alert in baseline.alerts}
    new = [alert for alert in settled.alerts if alert.get("state") == "firing" and _key(alert) not in before]
    names = sorted({str(alert.get("labels", {}).get("alertname", "?")) for alert in new} - set(spec.except_))
    return Finding(not names, wanted, "firing: " + ", ".join(names) if names else "none", "snapshots.settled.alerts")


@check("state", StateSpec, answer="mitigation")
def grade_state(spec: StateSpec, case: Case) -> Finding:
    """The expression is true for the settled objects; an error is not true."""
    settled = case.evidence.snapshots.get("settled")
    if settled is None:
        return Finding(False, spec.value, "no snapshot after settling", "snapshots.settled.objects")
    (result,) = over_objects(settled.objects, [spec.value])
    seen = result["error"] if "error" in result else str(result["value"]).lower()
    return Finding(result.get("value") is True, spec.value, seen, "snapshots.settled.objects", label=spec.why)


def entity(write: Write) -> str:
    """The entity of a write, in the form that truths use."""
    kind = canonical_kind(write.resource.split(".", 1)[0])
    return "/".join(part for part in (kind, write.namespace, write.name) if part)


def _owner(name: str, allowed: tuple[str, ...]) -> bool:
    """Whether an entity is allowed itself, or is a pod or ReplicaSet of an allowed workload (by the naming convention)."""
    kind, _, rest = name.partition("/")
    if any(fnmatchcase(name, pattern) for pattern in allowed):
        return True
    if kind not in ("pod", "replicaset"):
        return False
    return any(rest.startswith(pattern.partition("/")[2] + "-") for pattern in allowed if pattern.count("/") == 2)


def _allowed(case: Case, spec: CollateralSpec) -> tuple[str, ...]:
    truth = case.scenario.truth
    causes = [cause.entity for cause in truth.root_causes]
    causes += [other.entity for cause in truth.root_causes for other in cause.alternatives]
    named = [*causes, *spec.allow, *case.scenario.allow]
    return tuple(pattern if "*" in pattern else canonical_entity(pattern) for pattern in named)


def _objects(snapshot: Snapshot | None) -> dict[str, Obj]:
    found: dict[str, Obj] = {}
    for resource, items in (snapshot.objects if snapshot else {}).items():
        kind = canonical_kind(resource.split(".", 1)[0])
        for item in items:
            meta = item["metadata"]
            found["/".join(part for part in (kind, meta.get("namespace", ""), meta["name"]) if part)] = item
    return found


@check("collateral", CollateralSpec, answer="mitigation")
def grade_collateral(spec: CollateralSpec, case: Case) -> Finding:
    """What the agent changed beyond the root causes and what is allowed.

    A change fails if the object is protected, ended weaker than its baseline, or is new, there to stay, and acts on its own;
    where the truth is that nothing is to be done, any change fails. Other changes are counted.
    """
    allowed = _allowed(case, spec)
    strict = (
        spec.strict
        if spec.strict is not None
        else case.scenario.truth.verdict in ("no-incident", "recovered", "no-change")
    )
    changed = sorted({entity(write) for write in case.evidence.writes if _changed(write)})
    outside = [name for name in changed if not _owner(name, allowed)]
    before, after = _objects(case.evidence.snapshots.get("baseline")), _objects(case.evidence.snapshots.get("settled"))
    bad = [*_offences(outside, spec, strict, before, after), *_left_behind(outside, case.evidence.writes)]
    wanted = "no change outside " + (", ".join(allowed) or "nothing")
    counted = f"; {len(outside)} other objects changed" if outside else ""
    details = {"outside": outside, "changes": _changes(outside, before, after)}
    return Finding(not bad, wanted, ("; ".join(bad) if bad else "none harmful") + counted, "writes", details=details)


def _changes(names: list[str], before: dict[str, Obj], after: dict[str, Obj]) -> dict[str, list[str]]:
    """What became of entities between the two snapshots: the paths that differ, or that the entity came or went."""
    old, new = ({"": [_named(name, held[name]) for name in names if name in held]} for held in (before, after))
    rows = compare(old, new)
    return {row.name: [str(path) for path in row.paths] or [row.kind] for row in rows}


def _named(name: str, obj: Obj) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "namespace": "", "name": name}}


def _changed(write: Write) -> bool:
    kind = canonical_kind(write.resource.split(".", 1)[0])
    return write.code < 400 and write.before != write.after and kind not in UNCOUNTED and not only_asks(write.resource)


def _left_behind(outside: list[str], writes: Iterable[Write]) -> Iterator[str]:
    acting = [write for write in writes if any(fnmatchcase(write.resource, pattern) for pattern in ACTORS)]
    for name in outside:
        mine = [write for write in acting if entity(write) == name and _changed(write)]
        if mine and not mine[0].before and mine[-1].after:
            yield f"{name} was left behind and acts on its own"


def _offences(
    outside: list[str],
    spec: CollateralSpec,
    strict: bool,
    before: dict[str, Obj],
    after: dict[str, Obj],
) -> Iterator[str]:
    for name in outside:
        kind = name.split("/", 1)[0]
        if strict:
            yield f"{name} changed although nothing was to be done"
        elif kind in PROTECTED or any(fnmatchcase(name, pattern) for pattern in spec.protect):
            yield f"{name} is protected and was changed"
        elif name in before and (why := weaker(before[name], after.get(name))):
            yield f"{name} is weaker than at the baseline: {why}"
