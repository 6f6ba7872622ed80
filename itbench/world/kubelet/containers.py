"""The life of one container: image, configuration, start, run, exit, back-off. Called by the kubelet for each container of a pod.

Every step either finishes something and goes on, or sets `until`, the world second at which to look again.
"""

from math import inf
from typing import Protocol

from itbench.core.ids import digest
from itbench.kube.client import Obj
from itbench.world.images import Image, Registry, parse_image, pull_error
from itbench.world.kubelet import probes
from itbench.world.kubelet.environment import ConfigError, resolve
from itbench.world.kubelet.state import ContainerState, PodState, Run, Terminated
from itbench.world.objects import Objects
from itbench.world.process import Launch, Start, launch
from itbench.world.shell.machine import Machine

MAX_BACKOFF_S = 300.0
CRASH_BACKOFF_S = 10.0
CRASH_FORGET_S = 600.0
CONFIG_RETRY_S = 12.0
KEPT_RUNS = 2
START_ERROR = 128


class Node(Protocol):
    """What containers need of the kubelet around them."""

    registry: Registry
    objects: Objects
    prober: probes.Prober
    now: float

    def event(self, pod: PodState, obj: Obj, kind: str, reason: str, message: str, container: ContainerState) -> None:
        """Write an event about a container."""

    def cached(self, node: str, image: str) -> bool:
        """Whether an image is on the node."""

    def cache(self, node: str, image: str) -> None:
        """An image has been pulled."""

    def machine(self, pod: PodState, container: ContainerState) -> Machine:
        """The inside of a container."""

    def dial(self, pod: PodState, host: str, port: int) -> str:
        """Reachability from a pod."""


def jitter(pod: PodState, *key: object) -> float:
    """A fraction in [0, 1) drawn from the pod's uid, so that pods do not move in lockstep."""
    return digest(pod.uid, *key)[0] / 256


def span(seconds: float) -> str:
    """A back-off as Go prints it: `10s`, `2m40s`, `5m0s`."""
    whole = round(seconds)
    return f"{whole}s" if whole < 60 else f"{whole // 60}m{whole % 60}s"


class Care:
    """Steps through container lives."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def pump(self, pod: PodState, obj: Obj, container: ContainerState, spec: Obj, now: float) -> None:
        """Go on as far as possible at `now`."""
        for _ in range(20):
            if container.phase not in ("new", "exited") and container.until > now:
                return
            before = (container.phase, container.until, container.restarts)
            getattr(self, f"_{container.phase.replace('-', '_')}")(pod, obj, container, spec, now)
            if (container.phase, container.until, container.restarts) == before:
                return

    # ---- image

    def _new(self, pod: PodState, obj: Obj, c: ContainerState, spec: Obj, now: float) -> None:
        text = spec.get("image", "")
        reference = parse_image(text)
        if reference is None:
            self._wait(
                c,
                "InvalidImageName",
                f'Failed to apply default image tag "{text}": {pull_error(text)}',
                "config-error",
                now,
            )
            self.node.event(pod, obj, "Warning", "InspectFailed", c.message, c)
            self.node.event(pod, obj, "Warning", "Failed", "Error: InvalidImageName", c)
            return
        default = "Always" if reference.tag == "latest" and not reference.digest else "IfNotPresent"
        policy = spec.get("imagePullPolicy") or default
        present = self.node.cached(pod.node, text)
        if policy == "Never" and not present:
            text = f'Container image "{text}" is not present with pull policy of Never'
            self._wait(c, "ErrImageNeverPull", text, "config-error", now)
            self.node.event(pod, obj, "Warning", "ErrImageNeverPull", text, c)
            self.node.event(pod, obj, "Warning", "Failed", "Error: ErrImageNeverPull", c)
        elif present and policy != "Always":
            self.node.event(pod, obj, "Normal", "Pulled", f'Container image "{text}" already present on machine', c)
            self._create(pod, obj, c, spec, now)
        else:
            self.node.event(pod, obj, "Normal", "Pulling", f'Pulling image "{text}"', c)
            image = self.node.registry.find(text)
            c.phase, c.until = "pulling", now + (self._pull_s(pod, image) if image else 0.8 + jitter(pod, text))

    def _pull_s(self, pod: PodState, image: Image) -> float:
        if self.node.cached(pod.node, image.reference.full):
            return 0.3
        return image.pull_s * (0.8 + 0.4 * jitter(pod, image.name))

    def _pulling(self, pod: PodState, obj: Obj, c: ContainerState, spec: Obj, now: float) -> None:
        text = spec.get("image", "")
        image = self.node.registry.find(text)
        if image is not None:
            took = span_ms(self._pull_s(pod, image))
            size = f"Image size: {image.size_bytes} bytes."
            said = f'Successfully pulled image "{text}" in {took} ({took} including waiting). {size}'
            self.node.event(pod, obj, "Normal", "Pulled", said, c)
            self.node.cache(pod.node, text)
            c.pull_backoff_s = CRASH_BACKOFF_S
            self._create(pod, obj, c, spec, now)
            return
        error = pull_error(text)
        self.node.event(pod, obj, "Warning", "Failed", f'Failed to pull image "{text}": {error}', c)
        self.node.event(pod, obj, "Warning", "Failed", "Error: ErrImagePull", c)
        c.reason, c.message = "ErrImagePull", error
        c.pull_again_at, c.pull_backoff_s = now + c.pull_backoff_s, min(2 * c.pull_backoff_s, MAX_BACKOFF_S)
        c.phase, c.until = "pull-error", min(now + 1.0 + 2.0 * jitter(pod, "sync"), c.pull_again_at)

    def _pull_error(self, pod: PodState, obj: Obj, c: ContainerState, spec: Obj, now: float) -> None:
        text = spec.get("image", "")
        self.node.event(pod, obj, "Normal", "BackOff", f'Back-off pulling image "{text}"', c)
        self.node.event(pod, obj, "Warning", "Failed", "Error: ImagePullBackOff", c)
        c.reason, c.message = "ImagePullBackOff", f'Back-off pulling image "{text}": ErrImagePull: {c.message}'
        c.phase, c.until = "pull-backoff", max(c.pull_again_at, now)

    def _pull_backoff(self, pod: PodState, obj: Obj, c: ContainerState, spec: Obj, now: float) -> None:
        self._new(pod, obj, c, spec, now)

    def _config_error(self, pod: PodState, obj: Obj, c: ContainerState, spec: Obj, now: float) -> None:
        self._new(pod, obj, c, spec, now)

    @staticmethod
    def _wait(c: ContainerState, reason: str, message: str, phase: str, now: float) -> None:
        c.reason, c.message, c.phase, c.until = reason, message, phase, now + CONFIG_RETRY_S

    # ---- start

    def _create(self, pod: PodState, obj: Obj, c: ContainerState, spec: Obj, now: float) -> None:
        try:
            c.env = resolve(self.node.objects, obj, spec, pod)
        except ConfigError as error:
            self._wait(c, "CreateContainerConfigError", str(error), "config-error", now)
            self.node.event(pod, obj, "Warning", "Failed", f"Error: {error}", c)
            return
        image = self.node.registry.find(spec.get("image", ""))
        assert image is not None, "only images that were found are cached"
        c.image_id, c.image_name, c.program = image.ident, image.reference.full, image.name
        c.container_id = "containerd://" + digest(pod.uid, c.name, c.restarts).hex()
        c.overlay, c.data = {}, {}
        machine = self.node.machine(pod, c) if image.program.reads else None
        c.read = {path: machine.read(path) or "" for path in image.program.reads} if machine else {}
        self.node.event(pod, obj, "Normal", "Created", f"Created container: {c.name}", c)
        c.runs = [*c.runs[-(KEPT_RUNS - 1) :], Run(start=now)]
        c.started_at, c.reason, c.message = now, "", ""
        c.exit_at, c.recheck_at, c.serves_at = inf, inf, inf
        plan = self._launch(pod, c, spec, now)
        if plan.refused:
            self.node.event(pod, obj, "Warning", "Failed", f"Error: {plan.refused}", c)
            self._ended(pod, obj, c, now, START_ERROR, "StartError", plan.refused)
            c.reason = "RunContainerError"
            return
        self.node.event(pod, obj, "Normal", "Started", f"Started container {c.name}", c)
        c.phase = "running"
        probes.begin(c, spec, now)
        self._adopt(c, plan)
        c.until = self._next(pod, c)

    def _launch(self, pod: PodState, c: ContainerState, spec: Obj, now: float) -> Launch:
        image = self.node.registry.find(spec.get("image", ""))
        assert image is not None, "a running container has an image"
        machine = self.node.machine(pod, c)
        tag, dial = image.reference.tag, lambda host, port: self.node.dial(pod, host, port)
        return launch(Start(image.program, tag, spec, c.settings, machine, dial, now))

    @staticmethod
    def _adopt(c: ContainerState, plan: Launch) -> None:
        c.run.lines += plan.lines
        c.serves_at = c.run.serves_from = plan.serves_at
        c.exit_at, c.exit_code, c.recheck_at = plan.exit_at, plan.exit_code, plan.again_at
        c.exit_reason, c.exit_message = plan.reason, plan.message

    # ---- run and end

    def _next(self, pod: PodState, c: ContainerState) -> float:
        # The moment at which it begins to listen is an event too: traffic may flow from then on.
        opens = c.serves_at if c.serves_at > self.node.now else inf
        return min(c.exit_at, c.recheck_at, opens, probes.due(c))

    def _running(self, pod: PodState, obj: Obj, c: ContainerState, spec: Obj, now: float) -> None:
        if c.exit_at <= now:
            reason = c.exit_reason or ("Completed" if c.exit_code == 0 else "Error")
            self._ended(pod, obj, c, now, c.exit_code, reason, c.exit_message)
            return
        if c.recheck_at <= now:
            self._adopt(c, self._launch(pod, c, spec, now))
        doomed = probes.run(
            self.node.prober, pod, c, obj, spec, now, lambda kind, text: self._unhealthy(pod, obj, c, kind, text)
        )
        if doomed:
            self.node.event(
                pod, obj, "Normal", "Killing", f"Container {c.name} failed {doomed} probe, will be restarted", c
            )
            self._ended(pod, obj, c, now, 137 if "SIGKILL" in c.exit_message else 143, "Error", "")
            return
        c.until = self._next(pod, c)

    def _unhealthy(self, pod: PodState, obj: Obj, c: ContainerState, kind: str, text: str) -> None:
        self.node.event(pod, obj, "Warning", "Unhealthy", f"{kind} probe failed: {text}", c)

    def _ended(
        self, pod: PodState, obj: Obj, c: ContainerState, now: float, code: int, reason: str, message: str
    ) -> None:
        c.run.end = now
        c.ended = Terminated(code, reason, c.started_at, now, message, c.container_id)
        c.phase, c.ready, c.started, c.until = "exited", False, False, inf
        c.exit_at = c.serves_at = c.recheck_at = inf
        c.reason, c.message = reason, message

    def kill(self, pod: PodState, obj: Obj, c: ContainerState, now: float, code: int, reason: str) -> None:
        """End a running container from outside (out of memory, stop)."""
        if c.running:
            self._ended(pod, obj, c, now, code, reason, "")

    def _exited(self, pod: PodState, obj: Obj, c: ContainerState, spec: Obj, now: float) -> None:
        """Restart what has ended, if the policy says so."""
        assert c.ended is not None
        if not restarts(obj, c, spec):
            c.until = inf
            return
        lived = c.ended.finished_at - c.ended.started_at
        if lived > CRASH_FORGET_S:
            c.crash_backoff_s = 0.0
        wait = c.crash_backoff_s
        c.crash_backoff_s = min(2 * wait, MAX_BACKOFF_S) if wait else CRASH_BACKOFF_S
        if wait == 0.0:
            c.phase, c.until = "restarting", c.ended.finished_at + 0.6 + 0.8 * jitter(pod, c.name)
            return
        where = f"container={c.name} pod={pod.name}_{pod.namespace}({pod.uid})"
        c.reason, c.message = "CrashLoopBackOff", f"back-off {span(wait)} restarting failed {where}"
        text = f"Back-off restarting failed container {c.name} in pod {pod.name}_{pod.namespace}({pod.uid})"
        self.node.event(pod, obj, "Warning", "BackOff", text, c)
        c.phase, c.until = "crash-backoff", c.ended.finished_at + wait
        c.previous, c.ended = c.ended, None

    def _restarting(self, pod: PodState, obj: Obj, c: ContainerState, spec: Obj, now: float) -> None:
        self._crash_backoff(pod, obj, c, spec, now)

    def _crash_backoff(self, pod: PodState, obj: Obj, c: ContainerState, spec: Obj, now: float) -> None:
        c.restarts += 1
        c.previous, c.ended = c.ended or c.previous, None
        c.reason, c.message = "ContainerCreating", ""
        self._new(pod, obj, c, spec, now)


def restarts(obj: Obj, c: ContainerState, spec: Obj) -> bool:
    """Whether an ended container is started again."""
    policy = obj["spec"].get("restartPolicy", "Always")
    failed = c.ended is not None and c.ended.exit_code != 0
    if c.kind == "sidecar":
        return True
    if c.kind == "ephemeral":
        return False
    if c.kind == "init":
        return failed and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and failed)


def span_ms(seconds: float) -> str:
    """A duration as Go prints it with milliseconds: `1.2s`, `843ms`."""
    whole = round(seconds * 1000)
    return f"{whole}ms" if whole < 1000 else f"{whole / 1000:g}s"
