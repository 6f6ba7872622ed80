"""Turns the state of the cluster into levers of the flow: ready pods, speeds, timeouts, retries, defects, limits.

`Levers.update` is called by the estate whenever something may have changed; it compares with what it set before and touches the
engine only where a value differs, because each touch ends a stationary stretch.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

from itbench.core.documents.app import App, FlagEffect, Number
from itbench.kube.client import Obj
from itbench.kube.quantity import parse_quantity
from itbench.world.cluster import Cluster
from itbench.world.flow.engine import Flow
from itbench.world.kubelet.kubelets import specs_of
from itbench.world.kubelet.nodes import CORES
from itbench.world.kubelet.state import ContainerState, PodState
from itbench.world.serving import pod_file
from itbench.world.settings import evaluate, locate
from itbench.world.wiring import LONG_WAIT_S, SLOTS, Link, Net

MIN_FACTOR = 1e-3
REFUSING = {"refused", "nxdomain", "tls"}


@dataclass(slots=True)
class Member:
    """One pod of a workload, as the flow sees it."""

    pod: PodState
    obj: Obj
    container: ContainerState
    spec: Obj
    serving: bool
    tag: str


@dataclass(slots=True)
class Defects:
    """What is wrong on an edge: shares of attempts."""

    error: float = 0.0
    refuse: float = 0.0
    hang: float = 0.0
    reason: str = ""

    def spoil(self, share: float, reason: str) -> None:
        """Add an independent cause of errors."""
        if share > 0:
            self.error = 1 - (1 - self.error) * (1 - min(share, 1.0))
            self.reason = self.reason or reason


@dataclass
class Levers:
    """Settings of one flow net from one cluster."""

    app: App
    net: Net
    cluster: Cluster
    flow: Flow
    stolen: Callable[[PodState, str, float], float]
    """(pod, container, CPU limit in cores) -> cores that something else in the container takes."""
    slots: dict[str, list[str]] = field(default_factory=dict)
    """Workload -> pod uid in each slot, empty when free."""
    lives: dict[str, int] = field(default_factory=dict)
    """Pod uid -> restarts of its serving container when last seen."""
    applied: dict[str, float] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)
    """Edge -> why its calls fail, for logs."""
    flags: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)

    # ---- the whole

    def update(self) -> None:
        """Bring the engine up to date with the cluster."""
        members = self._all_members()
        self._place(members)
        self.flags = self._read_flags(members)
        routes: dict[tuple[str, str, int], tuple[str, frozenset[str]]] = {}
        reachable: dict[str, set[str]] = {workload: set() for workload in self.net.stations}
        for link in self.net.links:
            self._edge(link, members, routes, reachable)
        for workload in self.net.stations:
            self._pods(workload, members[workload], reachable[workload])
        for journey, root in self.net.roots.items():
            grain = self.net.links[root].grain
            self._set("rate", root, self.rates.get(journey, 0.0) * grain)
            self._set("limit", root, self._limit(journey) * grain)

    def _set(self, kind: str, index: int, value: float, slot: int = -1) -> None:
        """Touch one lever of the engine if its value differs from what was set before.

        Args:
            kind: a key of `_LEVERS`.
            index: edge or station.
            value: the new value.
            slot: pod slot of a station's lever, or of a defect on an edge.
        """
        key = f"{kind}/{index}/{slot}"
        if self.applied.get(key) != value:
            self.applied[key] = value
            _LEVERS[kind](self.flow, index, slot, value)

    def lookup(self, name: str, key: str) -> str | None:
        """A ConfigMap key of the app's namespace, now."""
        found = self.cluster.objects.get("configmaps", self.app.namespace, name)
        text = (found.get("data") or {}).get(key) if found else None
        return None if text is None else str(text)

    def _limit(self, journey: str) -> float:
        if self.app.edge is None:
            return inf
        key = self.app.journeys[journey].route or journey
        text = self.lookup(self.app.edge.limits.configmap, key)
        if text is None:
            return inf
        try:
            return max(0.0, evaluate(float(text), {}, self.lookup))
        except ValueError:
            return inf

    # ---- pods

    def _all_members(self) -> dict[str, list[Member]]:
        """Pods of every workload of the app, oldest first."""
        found: dict[str, list[Member]] = {workload: [] for workload in self.net.stations}
        homes = {name: w for w in self.net.stations for name in (w, *self.app.services[w].also)}
        for pod in self.cluster.kubelets.pods.values():
            obj = (
                self.cluster.objects.get("pods", pod.namespace, pod.name)
                if pod.namespace == self.app.namespace
                else None
            )
            owner = self.cluster.objects.workload_of(obj) if obj is not None else ""
            if obj is None or owner not in homes:
                continue
            service, specs = self.app.services[homes[owner]], specs_of(obj)
            name = service.container or owner.rsplit("/", 1)[-1]
            if name not in specs:
                name = obj["spec"]["containers"][0]["name"]
            found[homes[owner]].append(self._member(pod, obj, pod.containers[name], specs[name], service.program))
        return found

    def _member(self, pod: PodState, obj: Obj, container: ContainerState, spec: Obj, program: str | None) -> Member:
        now = self.cluster.now
        image = self.cluster.registry.find(spec.get("image", ""))
        right = program is None or container.program == program
        serving = container.running and container.serves_at <= now and pod.frozen_until <= now and right
        if image is not None and not image.program.listens and container.running and right:
            serving = pod.frozen_until <= now and container.serves_at <= now
        return Member(pod, obj, container, spec, serving, image.reference.tag if image else "")

    def _place(self, members: dict[str, list[Member]]) -> None:
        """Give every pod a slot, and tell the engine about processes that died."""
        for workload, found in members.items():
            station = self.net.stations.index(workload)
            slots = self.slots.setdefault(workload, [""] * SLOTS)
            alive = {member.pod.uid: member for member in found}
            for slot, uid in enumerate(slots):
                if not uid:
                    continue
                member = alive.get(uid)
                life = member.container.restarts if member and member.container.running else -1
                if self.lives.get(uid, -1) not in (-1, life):
                    self.flow.reset(station, slot)
                self.lives[uid] = life
                if member is None:
                    slots[slot] = ""
                    self.lives.pop(uid, None)
            for uid, member in alive.items():
                if uid not in slots and "" in slots and member.container.running:
                    slots[slots.index("")] = uid
                    self.lives[uid] = member.container.restarts

    def _pods(self, workload: str, found: list[Member], reachable: set[str]) -> None:
        station, service = self.net.stations.index(workload), self.app.services[workload]
        alive = {member.pod.uid: member for member in found}
        consumer = all(link.call is None and link.topic for link in self.net.of_service(workload))
        ready = [m for m in found if m.serving and (m.pod.uid in reachable or consumer)]
        placed = [uid for uid in self.slots[workload] if uid]
        extra = len([m for m in ready if m.pod.uid not in placed])
        inside = max(1, len([m for m in ready if m.pod.uid in placed]))
        for slot, uid in enumerate(self.slots[workload]):
            member = alive.get(uid)
            weight = 1.0 if member in ready and member is not None else 0.0
            factor = self._speed(workload, member) * (1 + extra / inside) if member is not None else 1.0
            queue = self._queue(service.queue, service.queue_s, workload, member)
            self._set("factor", station, factor, slot)
            self._set("queue", station, queue, slot)
            self._set("ready", station, weight, slot)

    def cpu_share(self, workload: str) -> float:
        """CPU seconds per second that a worker of a service is busy."""
        operations = self.app.services[workload].operations.values()
        busy = sum(operation.service_ms for operation in operations)
        return sum(operation.cpu_ms or operation.service_ms for operation in operations) / busy if busy else 1.0

    def _speed(self, workload: str, member: Member) -> float:
        """How fast a pod is against its full capacity: what its CPU limit, minus what was stolen, pays for."""
        limit = cpu_limit(member.spec)
        left = max(limit - self.stolen(member.pod, member.container.name, limit), 0.0)
        cost = self.app.services[workload].capacity.workers * self.cpu_share(workload)
        release = self._release(workload, member)
        slower = release.latency_x * release.cpu_x if release else 1.0
        return max(min(1.0, left / cost) / slower, MIN_FACTOR) if cost else 1.0

    def _release(self, workload: str, member: Member) -> Any:
        image = self.cluster.registry.find(member.spec.get("image", ""))
        return image.program.releases.get(member.tag) if image else None

    def _queue(self, count: Number, seconds: Number, workload: str, member: Member | None) -> float:
        env = member.container.settings if member else {}
        bound = evaluate(count, env, self.lookup)
        span = evaluate(seconds, env, self.lookup)
        if span < inf:
            service = self.app.services[workload]
            mean = max(operation.service_ms for operation in service.operations.values()) / 1000
            bound = min(bound, span * service.capacity.workers / mean)
        return max(bound * self.net.grains[workload], 1e-6)

    # ---- edges

    def _edge(
        self,
        link: Link,
        members: dict[str, list[Member]],
        routes: dict[tuple[str, str, int], tuple[str, frozenset[str]]],
        reachable: dict[str, set[str]],
    ) -> None:
        defects = Defects()
        callers = [m for m in members.get(link.caller, []) if m.serving]
        self._reach(link, callers, members, routes, reachable, defects)
        if link.call is not None:
            self._numbers(link, callers, defects)
        operation = self.app.operation(link.workload, link.operation)
        assert operation is not None, "the document was validated"
        defects.spoil(operation.errors, operation.error_log)
        work_x, delay_s = 1.0, 0.0
        for effect, value in self._effects(link, members, routes):
            defects.spoil(value if effect.errors == "value" else effect.errors, effect.log)
            work_x *= max(value if effect.cpu_x == "value" else effect.cpu_x, MIN_FACTOR)
            delay_s += (value if effect.latency_ms == "value" else effect.latency_ms) / 1000
        work_s = operation.service_ms / 1000 / link.grain * work_x
        self._apply(link, defects, work_s, delay_s)
        self._spoil(link, defects, members[link.workload])

    def _apply(self, link: Link, defects: Defects, work_s: float, delay_s: float) -> None:
        edge, base = link.index, self.net.spec.edges[link.index]
        self.reasons[edge] = defects.reason
        self._set("work", edge, work_s)
        self._set("delay", edge, base.delay_s + delay_s)
        if link.call is None and base.timeout_s == inf and not base.queued:
            self._set("timeout", edge, LONG_WAIT_S if defects.hang > 0 else inf)
        if base.queued:
            self._set("limit", edge, 0.0 if defects.hang + defects.refuse > 0.999 else inf)
        else:
            self._set("refuse", edge, defects.refuse)
            self._set("hang", edge, defects.hang)

    def _spoil(self, link: Link, defects: Defects, found: list[Member]) -> None:
        """Errors given by the callee: everywhere, or per pod where releases differ."""
        if not self._has_releases(link.workload):
            self._set("error", link.index, defects.error)
            return
        alive = {member.pod.uid: member for member in found}
        for slot, uid in enumerate(self.slots[link.workload]):
            release = self._release(link.workload, alive[uid]) if uid in alive else None
            self._set("error", link.index, 1 - (1 - defects.error) * (1 - (release.errors if release else 0.0)), slot)

    def _has_releases(self, workload: str) -> bool:
        name = self.app.services[workload].program
        return bool(name and self.app.programs[name].releases)

    def _numbers(self, link: Link, callers: list[Member], defects: Defects) -> None:
        call, edge = link.call, link.index
        assert call is not None, "roots and consumers have no call"
        most = self.net.spec.edges[edge].attempts - 1
        timeout = self._common(call.timeout_s, callers, inf)
        if timeout == inf and defects.hang > 0:
            timeout = LONG_WAIT_S
        retries = int(min(max(self._common(call.retries, callers, 0.0), 0), most))
        budget = self._common(call.retry_budget, callers, -1.0)
        backoff = self._common(call.backoff_s, callers, 0.0)
        self._set("timeout", edge, max(timeout, 1e-3))
        self._set("retries", edge, retries)
        self._set("budget", edge, budget)
        self._set("backoff", edge, backoff)

    def _common(self, number: Number, callers: list[Member], off: float) -> float:
        """The value that most callers use (the newest decide a tie); pods read env at start, ConfigMaps at once."""
        values = [evaluate(number, m.container.settings, self.lookup, off=off) for m in callers]
        if not values:
            return evaluate(number, {}, self.lookup, off=off)
        counts = Counter(values)
        return max(reversed(values), key=lambda value: counts[value])

    def _reach(
        self,
        link: Link,
        callers: list[Member],
        members: dict[str, list[Member]],
        routes: dict[tuple[str, str, int], tuple[str, frozenset[str]]],
        reachable: dict[str, set[str]],
        defects: Defects,
    ) -> None:
        if link.call is None and not link.topic:
            entry = self.app.journeys[link.journey].entry
            assert entry is not None, "journeys without entry have no edges"
            service, port = entry.service, entry.port
            if entry.ingress is not None:
                backend = self.cluster.net.backend(self.app.namespace, entry.ingress, entry.path)
                if backend is None:
                    defects.spoil(1.0, f"404 from ingress {entry.ingress}: no rule for {entry.path}")
                    return
                service, port = backend
            shares: list[tuple[Member | None, str, int]] = [(None, f"{service}.{self.app.namespace}", port)]
        else:
            address = link.call.address if link.call else self._consumption(link)
            shares = [(m, *locate(address, m.container.settings)) for m in callers]
        for member, host, port in shares:
            verdict, uids = self._route(member, host, port, routes)
            target = link.workload if link.call is not None or not link.topic else self._broker(link)
            good = uids & {m.pod.uid for m in members.get(target, ()) if m.serving}
            if verdict == "ok" and not good and uids:
                defects.spoil(1.0 / len(shares), f"{host}:{port} answers, but not as {target}")
            elif verdict == "ok":
                reachable.setdefault(target, set()).update(good)
            elif verdict in REFUSING:
                defects.refuse += 1.0 / len(shares)
                defects.reason = verdict_text(verdict, host, port)
            else:
                defects.hang += 1.0 / len(shares)
                defects.reason = verdict_text(verdict, host, port)
        defects.refuse, defects.hang = min(defects.refuse, 1.0), min(defects.hang, 1.0)

    def _consumption(self, link: Link) -> Any:
        return next(i.address for i in self.app.services[link.workload].consumes if i.topic == link.topic)

    def _broker(self, link: Link) -> str:
        return next(i.broker for i in self.app.services[link.workload].consumes if i.topic == link.topic)

    def _route(
        self,
        member: Member | None,
        host: str,
        port: int,
        routes: dict[tuple[str, str, int], tuple[str, frozenset[str]]],
    ) -> tuple[str, frozenset[str]]:
        key = (member.pod.uid if member else "", host, port)
        if key not in routes:
            found = self.cluster.net.reach(member.obj if member else None, host, port)
            states = [self.cluster.state(t.namespace, t.pod) for t in found.targets]
            routes[key] = (found.verdict, frozenset(state.uid for state in states if state is not None))
        return routes[key]

    # ---- flags

    def _read_flags(self, members: dict[str, list[Member]]) -> dict[str, float]:
        """Numeric value of every flag's served variant; empty when the flag service does not answer."""
        if self.app.flags is None:
            return {}
        for pod in self.cluster.kubelets.pods.values():
            obj = self.cluster.objects.get("pods", pod.namespace, pod.name)
            if obj is None or pod.namespace != self.app.namespace or pod.frozen_until > self.cluster.now:
                continue
            container = pod.containers.get(self.app.flags.container)
            if (
                container is None
                or not container.running
                or self.cluster.objects.workload_of(obj) != self.app.flags.service
            ):
                continue
            return parse_flags(pod_file(pod, obj, container.name, self.app.flags.file) or "")
        return {}

    def _effects(
        self,
        link: Link,
        members: dict[str, list[Member]],
        routes: dict[tuple[str, str, int], tuple[str, frozenset[str]]],
    ) -> list[tuple[FlagEffect, float]]:
        if self.app.flags is None or not self.flags:
            return []
        found: list[tuple[FlagEffect, float]] = []
        for name, effects in self.app.flags.effects.items():
            value = self.flags.get(name, 0.0)
            if value:
                hits = [e for e in effects if e.service == link.workload and e.operation in (None, link.operation)]
                found += [(effect, value) for effect in hits]
        return found if found and self._asks_flags(members.get(link.workload, []), routes) else []

    def _asks_flags(self, found: list[Member], routes: dict[tuple[str, str, int], tuple[str, frozenset[str]]]) -> bool:
        """Whether most pods of a service reach the flag service; without an answer clients take the default, which is off."""
        assert self.app.flags is not None, "there are effects"
        address, serving = self.app.flags.address, [m for m in found if m.serving]
        if address is None or not serving:
            return True
        verdicts = [self._route(m, *locate(address, m.container.settings), routes)[0] for m in serving]
        return 2 * verdicts.count("ok") >= len(verdicts)

    # ---- checkpoints

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        return {
            "slots": {workload: list(uids) for workload, uids in self.slots.items()},
            "lives": dict(self.lives),
            "applied": dict(self.applied),
            "reasons": {str(edge): text for edge, text in self.reasons.items()},
            "flags": dict(self.flags),
            "rates": dict(self.rates),
        }

    def restore(self, data: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self.slots = {workload: list(uids) for workload, uids in data["slots"].items()}
        self.lives, self.applied = dict(data["lives"]), dict(data["applied"])
        self.reasons = {int(edge): text for edge, text in data["reasons"].items()}
        self.flags, self.rates = dict(data["flags"]), dict(data["rates"])


_LEVERS: dict[str, Callable[[Flow, int, int, float], None]] = {
    "rate": lambda flow, edge, slot, value: flow.set_rate(edge, value),
    "limit": lambda flow, edge, slot, value: flow.set_admission(edge, value),
    "factor": lambda flow, station, slot, value: flow.set_capacity(station, slot, value),
    "queue": lambda flow, station, slot, value: flow.set_queue(station, slot, value),
    "ready": lambda flow, station, slot, value: flow.set_ready(station, slot, value),
    "work": lambda flow, edge, slot, value: flow.set_edge(edge, work_s=value),
    "delay": lambda flow, edge, slot, value: flow.set_edge(edge, delay_s=value),
    "timeout": lambda flow, edge, slot, value: flow.set_edge(edge, timeout_s=value),
    "retries": lambda flow, edge, slot, value: flow.set_edge(edge, retries=int(value)),
    "budget": lambda flow, edge, slot, value: flow.set_edge(edge, budget=value),
    "backoff": lambda flow, edge, slot, value: flow.set_edge(edge, backoff_s=value),
    "refuse": lambda flow, edge, slot, value: flow.set_fault(edge, value, "refuse"),
    "hang": lambda flow, edge, slot, value: flow.set_fault(edge, value, "hang"),
    "error": lambda flow, edge, slot, value: flow.set_fault(edge, value, slot=None if slot < 0 else slot),
}
"""How each kind of lever is pulled."""


def cpu_limit(spec: Obj) -> float:
    """The container's CPU limit in cores; the whole node without one."""
    limit = ((spec.get("resources") or {}).get("limits") or {}).get("cpu")
    return float(parse_quantity(str(limit))) if limit is not None else float(CORES)


def parse_flags(text: str) -> dict[str, float]:
    """Flag name -> value of its default variant as a number (true = 1); disabled and unreadable flags are left out."""
    try:
        data = json.loads(text)
        flags = data.get("flags") or {}
    except (ValueError, AttributeError):
        return {}
    found: dict[str, float] = {}
    for name, flag in flags.items():
        if not isinstance(flag, dict) or flag.get("state") != "ENABLED":
            continue
        value = (flag.get("variants") or {}).get(flag.get("defaultVariant"))
        if isinstance(value, bool | int | float):
            found[name] = float(value)
    return found


def verdict_text(verdict: str, host: str, port: int) -> str:
    """Why a connection failed, as client libraries say it."""
    return {
        "nxdomain": f"lookup {host}: no such host",
        "refused": f"dial tcp {host}:{port}: connect: connection refused",
        "tls": f"{host}:{port}: tls: first record does not look like a TLS handshake",
    }.get(verdict, f"dial tcp {host}:{port}: i/o timeout")
