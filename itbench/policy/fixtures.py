"""Hidden fixtures for policies on host namespaces: violating, compliant and malformed inputs, drawn from the trial's seed.

The expected verdict of a fixture comes from how it was built, not from any engine. Mechanisms are a closed vocabulary. Drivers
give the fixtures to what the agent wrote after it left; the objects also become the second, hidden cluster. Every object is
accepted by a Kubernetes API server (a test asks a real one).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from itbench.core.ids import Ids
from itbench.policy.controls.catalog import control
from itbench.policy.controls.pods import TEMPLATES, controller

Obj = dict[str, Any]
Verdict = Literal["satisfied", "not_satisfied", "not_assessed"]
CONTROLS = ("5.2.3", "5.2.4")
KINDS: Mapping[str, tuple[str, str]] = {
    "pods": ("v1", "Pod"),
    "deployments.apps": ("apps/v1", "Deployment"),
    "daemonsets.apps": ("apps/v1", "DaemonSet"),
    "statefulsets.apps": ("apps/v1", "StatefulSet"),
    "replicasets.apps": ("apps/v1", "ReplicaSet"),
    "replicationcontrollers": ("v1", "ReplicationController"),
    "jobs.batch": ("batch/v1", "Job"),
    "cronjobs.batch": ("batch/v1", "CronJob"),
}
WORDS = (
    "orders",
    "ledger",
    "agent",
    "probe",
    "mailer",
    "search",
    "cache",
    "edge",
    "billing",
    "audit",
    "sync",
    "export",
)
SPACES = ("payments", "platform", "data", "tools", "web", "observability", "partners", "research")
IMAGE = "registry.k8s.io/pause:3.10.1"
FLAGS = ("hostPID", "hostIPC")


@dataclass(frozen=True)
class Fixture:
    """One input of the policy and what must come out.

    Args:
        id: stable in a trial.
        mechanism: how it violates, or why it only looks so.
        given: the input.
        verdict: what must come out.
        violations: subjects as (kind, namespace, name).
    """

    id: str
    mechanism: str
    given: Any
    verdict: Verdict
    violations: tuple[tuple[str, str, str], ...] = ()


def wrap(resource: str, spec: Obj, name: str, namespace: str) -> Obj:
    """An API-valid object of a kind around a pod specification."""
    version, kind = KINDS[resource]
    meta, labels = {"name": name, "namespace": namespace}, {"app": name}
    if resource == "pods":
        return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}
    template = {"metadata": {"labels": labels}, "spec": spec}
    body: Obj = {"template": template}
    if resource in ("jobs.batch", "cronjobs.batch"):
        template["spec"] = {**spec, "restartPolicy": "Never"}
    if resource == "cronjobs.batch":
        body = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": template}}}
    elif resource == "replicationcontrollers":
        body["selector"] = labels
    elif resource != "jobs.batch":
        body["selector"] = {"matchLabels": labels}
    if resource == "statefulsets.apps":
        body["serviceName"] = name
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": body}


def subject(obj: Obj) -> tuple[str, str, str]:
    """(kind, namespace, name); the name is empty where the server has not given one yet."""
    meta = obj["metadata"]
    return (obj["kind"], meta.get("namespace", ""), meta.get("name", ""))


class Draw:
    """Names, namespaces and other things of no consequence, drawn from the seed."""

    def __init__(self, seed: int) -> None:
        self._random = Ids(seed).rng("fixtures", "host-namespaces")
        self.spaces = self._random.sample(SPACES, 4)
        self._number = 0

    def name(self) -> str:
        """A new name."""
        self._number += 1
        return f"{self._random.choice(WORDS)}-{self._number}"

    def space(self) -> str:
        """A namespace; the last one drawn stays empty."""
        return self._random.choice(self.spaces[:3])

    def spec(self, **more: Any) -> Obj:
        """A pod specification with irrelevant fields that vary."""
        container: Obj = {"name": self._random.choice(("main", "app", "server")), "image": IMAGE}
        if self._random.random() < 0.5:
            container["resources"] = {"requests": {"cpu": "10m"}}
        if self._random.random() < 0.5:
            more.setdefault("terminationGracePeriodSeconds", 5)
        return {"containers": [container], **more}

    def shuffled(self, fixtures: list[Fixture]) -> list[Fixture]:
        """In another order."""
        return self._random.sample(fixtures, len(fixtures))


def listing(*items: Obj) -> Obj:
    """What `kubectl get -o json` prints."""
    return {"apiVersion": "v1", "kind": "List", "items": list(items), "metadata": {"resourceVersion": ""}}


def violating_objects(draw: Draw) -> Iterator[tuple[str, Obj]]:
    """(mechanism, object): every kind that makes pods, both fields."""
    for index, resource in enumerate(TEMPLATES):
        flag = FLAGS[index % 2]
        yield resource.partition(".")[0], wrap(resource, draw.spec(**{flag: True}), draw.name(), draw.space())
    yield "pod-ipc", wrap("pods", draw.spec(hostIPC=True), draw.name(), draw.space())
    yield "both-fields", wrap("deployments.apps", draw.spec(hostPID=True, hostIPC=True), draw.name(), draw.space())


def compliant_objects(draw: Draw) -> Iterator[tuple[str, Obj]]:
    """(mechanism, object): what only looks like a violation."""
    yield "field-absent", wrap("pods", draw.spec(), draw.name(), draw.space())
    yield "field-false", wrap("deployments.apps", draw.spec(hostPID=False, hostIPC=False), draw.name(), draw.space())
    yield "other-host-field", wrap("daemonsets.apps", draw.spec(hostNetwork=True), draw.name(), draw.space())
    yield "shared-process-namespace", wrap("pods", draw.spec(shareProcessNamespace=True), draw.name(), draw.space())
    named = draw.spec()
    named["containers"][0] |= {"args": ["--hostPID=true"], "env": [{"name": "hostIPC", "value": "true"}]}
    yield "only-in-words", wrap("cronjobs.batch", named, draw.name(), draw.space())
    noted = wrap("statefulsets.apps", draw.spec(), draw.name(), draw.space())
    noted["metadata"]["annotations"] = {"audit/hostPID": "true"}
    yield "only-in-annotations", noted


def malformed() -> dict[str, Any]:
    """Inputs from which nothing follows, by mechanism."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}
    status = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403}
    return {
        "file-missing": None,
        "no-items": {"apiVersion": "v1", "kind": "List"},
        "items-no-array": {"apiVersion": "v1", "kind": "List", "items": {}},
        "items-null": {"apiVersion": "v1", "kind": "List", "items": None},
        "error-saved": status,
        "item-without-specification": listing(pod),
        "empty-object": {},
    }


def _mixed(draw: Draw) -> Iterator[Fixture]:
    good, bad = draw.spec(), draw.spec(hostPID=True)
    name, first, second = draw.name(), draw.spaces[0], draw.spaces[1]
    same = [wrap("pods", good, name, first), wrap("pods", bad, name, second)]
    yield Fixture("same-name-elsewhere", "mixed-list", listing(*same), "not_satisfied", (subject(same[1]),))
    unnamed = wrap("pods", draw.spec(hostIPC=True), "", draw.space())
    del unnamed["metadata"]["name"]
    unnamed["metadata"]["generateName"] = "worker-"
    yield Fixture("generate-name", "generate-name", listing(unnamed), "not_satisfied", (subject(unnamed),))
    made = wrap("pods", draw.spec(hostPID=True), draw.name(), draw.space())
    made["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}]
    maker = wrap("deployments.apps", draw.spec(hostPID=True), draw.name(), draw.space())
    yield Fixture("made-by-another", "mixed-list", listing(made, maker), "not_satisfied", (subject(maker),))


def fixtures(seed: int) -> list[Fixture]:
    """The matrix of one trial, in drawn order."""
    draw = Draw(seed)
    found = [
        Fixture(f"bad-{mechanism}", mechanism, listing(obj), "not_satisfied", (subject(obj),))
        for mechanism, obj in violating_objects(draw)
    ]
    found += _mixed(draw)
    found += [
        Fixture(f"good-{mechanism}", mechanism, listing(obj), "satisfied") for mechanism, obj in compliant_objects(draw)
    ]
    found.append(Fixture("good-empty", "empty-population", listing(), "satisfied"))
    found += [Fixture(f"broken-{name}", name, given, "not_assessed") for name, given in malformed().items()]
    return draw.shuffled(found)


def second_cluster(seed: int) -> list[Obj]:
    """Manifests of the hidden cluster: namespaces (one stays empty), violating and compliant workloads."""
    draw = Draw(seed + 1)
    spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(draw.spaces)]
    objects = [obj for _, obj in (*violating_objects(draw), *compliant_objects(draw))]
    return spaces + objects


def truth(objects: Mapping[str, list[Obj]]) -> tuple[tuple[str, str, str], ...]:
    """The violations of a cluster by our own controls: what a right policy reports of it, sorted."""
    own = {resource: [obj for obj in items if not controller(obj)] for resource, items in objects.items()}
    found = {
        (each.subject.kind, each.subject.namespace, each.subject.name)
        for number in CONTROLS
        for each in control(number).check(own)
        if each.state == "not_satisfied"
    }
    return tuple(sorted(found))


def result_of(value: Any) -> tuple[str, tuple[tuple[str, str, str], ...]]:
    """State and violations of what a policy gave.

    Raises:
        ValueError: it is not of the form that the contract asks for; the text says what is wrong.
    """
    if not isinstance(value, dict) or value.get("state") not in ("satisfied", "not_satisfied", "not_assessed"):
        raise ValueError(f"result has no state satisfied, not_satisfied or not_assessed: {str(value)[:120]}")
    listed = value.get("violations", [])
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise ValueError(f"violations is not a list of objects: {str(listed)[:120]}")
    keys = ("kind", "namespace", "name")
    return value["state"], tuple(sorted(tuple(str(each.get(key, "")) for key in keys) for each in listed))  # type: ignore[misc]


def judge(evaluate: Callable[[Any], Any], matrix: Iterable[Fixture]) -> list[dict[str, Any]]:
    """One row per fixture: what was wanted, what came out, whether it is right.

    Args:
        evaluate: input -> an object with `value`, `cause`, `detail` (`itbench.engines.rego.Evaluation`).
        matrix: the fixtures.
    """
    return [_row(fixture, evaluate(fixture.given)) for fixture in matrix]


def _row(fixture: Fixture, came: Any) -> dict[str, Any]:
    row = {
        "id": fixture.id,
        "mechanism": fixture.mechanism,
        "expected": fixture.verdict,
        "violations": [list(each) for each in sorted(fixture.violations)],
    }
    if came.cause:
        return {**row, "state": came.cause, "seen": [], "right": False, "detail": came.detail[:500]}
    try:
        state, seen = result_of(came.value)
    except ValueError as error:
        return {**row, "state": "artifact_error", "seen": [], "right": False, "detail": str(error)}
    right = state == fixture.verdict and (state == "not_assessed" or seen == tuple(sorted(fixture.violations)))
    return {**row, "state": state, "seen": [list(each) for each in seen], "right": right, "detail": ""}
