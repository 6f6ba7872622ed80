"""The app document: the behaviour behind an app's images, from which the world runs it. A new app needs no Python.

The manifests say what objects exist; this document says what the programs in their images do: what they need to start, where they
listen, what each operation costs and whom it calls, what they log, and what users do with the whole. It is read by the library,
run by `itbench.world`. Names of keys in `services` are workloads as the manifests name them (`deployment/checkout`).

```yaml
schema: itbench/app/v1
id: astronomy-shop
title: OpenTelemetry astronomy shop
namespace: shop
programs:                        # one per image that matters: what runs behind `repository:tag`
  checkout:
    image: ghcr.io/open-telemetry/demo        # repository without the tag
    tags: [2.2.0-checkout, 2.1.3-checkout]    # exactly these can be pulled ("*" = any plausible tag)
    size_mb: 21
    start_s: 1.5                 # from start of the process to listening
    needs:                       # else it exits right after start, with this line and code
      env: [CHECKOUT_PORT, CART_ADDR, {name: PRODUCT_CATALOG_ADDR, log: "environment variable %s not set", exit_code: 2}]
      files: []                  # paths that a mount must provide, e.g. /etc/flagd/demo.flagd.json
      connects: [{address: {env: KAFKA_ADDR}, log: "kafka broker unreachable: {reason}", exit_code: 1}]   # at start
    listens: [{port: {env: CHECKOUT_PORT, default: 8080}, protocol: grpc}]
    memory_mb: {base: 12, per_rps: 0.1, per_queued: 0.01}    # OOMKilled above the container's limit
    idle_cpu: 0.005              # cores
    releases: {2.2.1-checkout: {crash: {exit_code: 2, log: "panic: ..."}}}    # tags that behave differently (tag becomes known)
    log:
      line: '{"time":"{rfc3339}","level":"{level}","msg":"{message}","service.name":"checkout"}'
      started: ["service config: ...", "starting gRPC server on port :{port}"]
      request: '[{operation}] served'               # one line per sampled success; omit for silence
      error: '[{operation}] failed: {reason}'       # {reason}: could not reach `to`, deadline exceeded, flag text, ...
      background: [{every_s: 60, message: "exporter flushed", level: INFO}]
    shell: none                  # none (distroless) | sh (busybox-like) | bash
    files: {/etc/os-release: "..."}                 # what `cat` and `ls` find besides the mounts
    process: /usr/src/app/checkout                  # what `ps` shows as pid 1
services:
  deployment/checkout:
    container: checkout          # the container that serves (default: the workload's name)
    program: checkout            # serves only while this program runs in that container
    protocol: grpc               # http | grpc | tcp | kafka | redis | postgres
    capacity:                    # C = workers / service time; the CPU it costs at C is workers * cpu_ms / service_ms cores
      workers: 1
      scv: 0.2                   # squared coefficient of variation of the service time
      grain: 62                  # queue in units of 124 ms / 62, as a service with 62 times the traffic would (default 1)
    queue_s: {env: ACCEPT_QUEUE, default: 10, unit: s}       # accept queue in seconds at C; or `queue: 1000` requests
    operations:
      PlaceOrder:
        service_ms: 124          # busy time of one worker
        cpu_ms: 62               # CPU time of it (default: all of service_ms)
        latency_ms: 30           # time on top in which no worker is busy
        calls:                   # in parallel unless `after` names an earlier call by its `id`
          - {to: deployment/cart, operation: GetCart, address: {env: CART_ADDR}}
          - {id: pay, to: deployment/payment, operation: Charge, address: {env: PAYMENT_ADDR}, timeout_s: 5, retries: 0}
          - {to: deployment/cart, operation: EmptyCart, address: {env: CART_ADDR}, errors: ignored}  # does not fail us
          - {to: deployment/kafka, operation: Produce, address: {env: KAFKA_ADDR}, topic: orders, errors: ignored}
  deployment/frontend:
    operations:
      POST /api/checkout:
        service_ms: 10
        calls:
          - to: deployment/checkout
            operation: PlaceOrder
            address: {env: CHECKOUT_ADDR}                      # host:port, URL, or use `match` for connection strings
            times: 1                                           # calls per request
            timeout_s: {env: CHECKOUT_TIMEOUT_MS, default: 3000, unit: ms}
            retries: {env: CHECKOUT_RETRIES, default: 4, max: 6}      # max: the most that is modelled
            retry_budget: {env: RETRY_BUDGET_PERCENT, default: off, unit: percent}
            backoff_s: 0
  deployment/accounting:
    consumes: [{topic: orders, operation: BookOrder, broker: deployment/kafka, address: {env: KAFKA_ADDR}}]
    operations: {BookOrder: {service_ms: 5, calls: [{to: deployment/postgresql, operation: Insert,
                 address: {env: DB_CONNECTION_STRING, match: 'Host=(?P<host>[^;]+)', port: 5432}}]}}
flags:
  service: deployment/flagd      # who serves the flags (8013); unreachable or missing flags count as their default `off`
  container: flagd
  file: /etc/flagd/demo.flagd.json
  editor: {container: flagd-ui, port: 4000}
  effects:                       # value of the served variant; true = 1
    cartFailure: [{service: deployment/cart, operation: EmptyCart, errors: value, log: "Can't access cart storage."}]
    adHighCpu: [{service: deployment/ad, operation: GetAds, cpu_x: 8}]
edge:                            # the lever that sheds load
  limits: {configmap: edge-limits}     # data: one key per journey route: requests per second, or `off`
journeys:
  buy:
    entry: {service: frontend-proxy, port: 8080, workload: deployment/frontend-proxy, operation: POST /api/checkout}
    rate: 10                     # requests per second by default; the scenario's load replaces it
    timeout_s: 20
    route: buy                   # key in the edge limits (default: the journey's name)
    verify: [{service: deployment/cart, operation: EmptyCart}]        # a success counts only if this effect happened too
  orders-booked:
    follows: buy                 # no traffic of its own: each success of `buy` must have this effect within `within_s`
    verify: [{service: deployment/accounting, operation: BookOrder}]
    within_s: 60
slo: {buy: {success: 0.99, p99_ms: 800}}     # defaults of checks, alerts and dashboards
```
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from itbench.core.documents.base import Document, Rate

Workload = Annotated[str, Field(pattern=r"^(deployment|statefulset|daemonset)/[a-z0-9.-]+$")]
Protocol = Literal["http", "grpc", "tcp", "udp", "kafka", "redis", "postgres"]
Unit = Literal["s", "ms", "percent", "count"]
SCALES: dict[str, float] = {"s": 1.0, "ms": 1e-3, "percent": 1e-2, "count": 1.0}
"""What one written unit of a setting is worth in the model."""


def _off(value: Any) -> Any:
    """YAML reads a bare `off` as False; in this document it always means "no limit"."""
    return "off" if value is False else value


class Setting(Document):
    """A number that an operator can change: an env variable (read at start) or a ConfigMap key (hot: read at once).

    The text in the object is a number in `unit`, a duration such as `3s` or `500ms`, or `off` / empty (no limit, feature unused).
    """

    env: str | None = None
    configmap: str | None = None
    key: str | None = None
    hot: bool = False
    default: Annotated[float | Literal["off"], BeforeValidator(_off)] = "off"
    unit: Unit = "count"
    max: float | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Setting:
        if (self.env is None) == (self.configmap is None):
            raise ValueError("a setting has exactly one of `env` and `configmap`")
        if self.configmap is not None and self.key is None:
            raise ValueError("a setting from a configmap names its `key`")
        return self


Number = Annotated[float | Setting | Literal["off"], BeforeValidator(_off)]
"""A plain number in the field's own unit, `off`, or a `Setting`."""


class Address(Document):
    """Where a call goes: read from env or a mounted file of the real manifest, so that a wrong value really breaks it.

    A file is one that the program `reads`, as it was when the process started.

    The text may be `host`, `host:port`, a URL, or anything that `match` finds `host` (and `port`) in.
    """

    env: str | None = None
    file: str | None = None
    port_env: str | None = None
    default: str | None = None
    match: str | None = None
    port: int | None = None

    @model_validator(mode="after")
    def _some_source(self) -> Address:
        if self.env is None and self.file is None and self.default is None:
            raise ValueError("an address has `env` or `file`, `default`, or both")
        return self


class Call(Document):
    """One call that an operation makes. Calls run in parallel unless `after` names an earlier one."""

    to: Workload
    operation: str
    address: Address
    id: str | None = None
    after: str | None = None
    times: float = Field(default=1.0, gt=0)
    timeout_s: Number = "off"
    retries: Number = 0
    retry_budget: Number = "off"
    retry_errors: bool = False
    """Retry answers that are errors too. Most clients retry only what got no answer: timeouts, resets, refusals."""
    backoff_s: Number = 0
    errors: Literal["fatal", "ignored"] = "fatal"
    wait: bool = True
    """False: fire and forget."""
    topic: str | None = None
    """The call publishes to this topic; its consumers work later."""


class Operation(Document):
    """What a service does for one request, besides its calls."""

    service_ms: float = Field(gt=0)
    cpu_ms: float | None = Field(default=None, gt=0)
    latency_ms: float = Field(default=0.0, ge=0)
    errors: float = Field(default=0.0, ge=0, le=1)
    error_log: str = "internal error"
    calls: tuple[Call, ...] = ()


class Consumption(Document):
    """A subscription: one run of `operation` for each record of the topic."""

    topic: str
    operation: str
    broker: Workload
    address: Address


class Capacity(Document):
    """Workers that serve at the same time, and how much service times vary (0 constant, 1 exponential)."""

    workers: int = Field(default=8, ge=1, le=64)
    scv: float = Field(default=1.0, ge=0)
    grain: float = Field(default=1.0, ge=1)
    """Each request is modelled as so many small ones: the limit of a large service, where queues do not feel single requests."""


class Service(Document):
    """What one workload serves. `also` lists workloads with the same behaviour behind the same Service (reviews v2, v3)."""

    container: str | None = None
    program: str | None = None
    also: tuple[Workload, ...] = ()
    protocol: Protocol = "http"
    capacity: Capacity = Capacity()
    queue: Number = "off"
    queue_s: Number = "off"
    operations: dict[str, Operation] = {}
    consumes: tuple[Consumption, ...] = ()


class Exit(Document):
    """How a program ends: exit code and last words."""

    exit_code: int = 1
    log: str = ""


class EnvNeed(Exit):
    """A variable without which the program exits (`%s` in the line is its name)."""

    name: str
    log: str = "environment variable %s not set"


class FileNeed(Exit):
    """A file that a mount must provide."""

    path: str
    log: str = "open %s: no such file or directory"


class ConnectNeed(Exit):
    """A server that must answer when the program starts (`{host}`, `{port}`, `{reason}` in the line)."""

    address: Address
    log: str = "cannot connect to {host}:{port}: {reason}"
    retry_s: float | None = None
    """Instead of exiting, try again after so many seconds (wait-for init containers)."""


def _env(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


def _file(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


class Needs(Document):
    """What a program must find when it starts."""

    env: tuple[Annotated[EnvNeed, BeforeValidator(_env)], ...] = ()
    files: tuple[Annotated[FileNeed, BeforeValidator(_file)], ...] = ()
    connects: tuple[ConnectNeed, ...] = ()


class Listen(Document):
    """A port the program opens once it has started."""

    port: int | Setting
    protocol: Protocol = "http"
    paths: dict[str, str] = {}
    """HTTP path -> body, answered with 200 besides the operations' own paths (health endpoints); `{hostname}` is filled in."""
    flag: str = ""
    """Option on the command line that gives the port (`--http-port`)."""
    root: str = ""
    """Folder whose files are served under `/` (`index.html` for folders)."""
    serves: Literal["", "netexec", "guestbook", "liveness", "webhook", "conversion"] = ""
    """A server that the world has as a program of its own (`itbench.world.agnhost`)."""


class Memory(Document):
    """Resident memory in MiB."""

    base: float = 32
    per_rps: float = 0.0
    per_queued: float = 0.0


class Background(Document):
    """A line that every healthy run writes, each `every_s` seconds on average."""

    message: str
    every_s: float = Field(gt=0)
    level: str = "INFO"


class Log(Document):
    """The app's own log format: `line` has {rfc3339} {unix} {level} {message}, messages have {operation} {reason} {port}."""

    line: str = "{rfc3339} {level} {message}"
    started: tuple[str, ...] = ()
    request: str | None = None
    error: str | None = "{operation} failed: {reason}"
    stopped: str | None = None
    background: tuple[Background, ...] = ()


class Release(Document):
    """A tag that behaves differently from its siblings."""

    crash: Exit | None = None
    cpu_x: float = 1.0
    latency_x: float = 1.0
    errors: float = 0.0
    log: str = "internal error"


class Program(Document):
    """What runs behind one image repository (and, where repositories are shared, its tags)."""

    image: str
    tags: tuple[str, ...] = ()
    size_mb: float = 50
    start_s: float = Field(default=1.0, ge=0)
    stop_s: float = Field(default=0.2, ge=0)
    runs_s: float | None = None
    """A program that ends by itself (init containers, jobs) after so many seconds; None: a server."""
    copies: dict[str, str] = {}
    """Files that it copies before it ends (source path -> target path), as init containers do."""
    needs: Needs = Needs()
    reads: tuple[str, ...] = ()
    """Files that it reads once, when it starts: addresses may lie in them."""
    listens: tuple[Listen, ...] = ()
    memory_mb: Memory = Memory()
    idle_cpu: float = 0.001
    releases: dict[str, Release] = {}
    log: Log = Log()
    shell: Literal["none", "sh", "bash"] = "sh"
    files: dict[str, str] = {}
    process: str = "/app/server"
    commands: dict[str, tuple[Listen, ...]] = {}
    """First argument -> the ports that the program then opens instead (programs of many commands)."""
    user: str = "root"
    workdir: str = "/"


class FlagEffect(Document):
    """What a flag does while its served value is not zero. `value` means: the variant's own number (true = 1)."""

    service: Workload
    operation: str | None = None
    errors: float | Literal["value"] = 0.0
    latency_ms: float | Literal["value"] = 0.0
    cpu_x: float | Literal["value"] = 1.0
    log: str = "feature flag enabled"


class FlagEditor(Document):
    """The web form that edits the served copy: the container and port where it listens."""

    container: str
    port: int
    read_path: str = "/api/read"
    write_path: str = "/api/write"


class Flags(Document):
    """The feature-flag service of the app."""

    service: Workload
    container: str
    file: str
    editor: FlagEditor | None = None
    address: Address | None = None
    """Where services ask for flags; those that do not get through work as if every flag were off. None: all get through."""
    effects: dict[str, tuple[FlagEffect, ...]] = {}


class Limits(Document):
    """ConfigMap with one key per route: requests per second or `off`; read at once."""

    configmap: str


class Edge(Document):
    """Admission control in front of the app."""

    limits: Limits


class Entry(Document):
    """Where users come in: the Service they reach, the workload behind it, and the operation.

    With `ingress` they come by the Ingress of that name, which sends `path` to whatever Service its rules name now.
    """

    service: str
    port: int
    ingress: str | None = None
    path: str = "/"
    workload: Workload
    operation: str


class Effect(Document):
    """An effect that must have happened: the operation ran without error for this journey."""

    service: Workload
    operation: str


class Journey(Document):
    """What users do, measured from outside."""

    entry: Entry | None = None
    follows: str | None = None
    rate: Rate = 0.0
    timeout_s: float = 20.0
    route: str | None = None
    verify: tuple[Effect, ...] = ()
    within_s: float = 60.0

    @model_validator(mode="after")
    def _entry_or_follows(self) -> Journey:
        if (self.entry is None) == (self.follows is None):
            raise ValueError("a journey has exactly one of `entry` and `follows`")
        if self.follows is not None and not self.verify:
            raise ValueError("a journey that follows another names the effects to `verify`")
        return self


class Slo(Document):
    """Service level that a journey must hold."""

    success: float = Field(default=0.99, gt=0, le=1)
    p99_ms: float | None = None


class App(Document):
    """An app's behaviour, whole."""

    schema_: Literal["itbench/app/v1"] = Field(alias="schema")
    id: str
    title: str = ""
    source: str = ""
    namespace: str
    programs: dict[str, Program] = {}
    services: dict[Workload, Service] = {}
    flags: Flags | None = None
    edge: Edge | None = None
    journeys: dict[str, Journey] = {}
    slo: dict[str, Slo] = {}

    @model_validator(mode="after")
    def _names_resolve(self) -> App:
        problems = [*self._bad_calls(), *self._bad_journeys(), *self._bad_flags()]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def operation(self, workload: str, name: str) -> Operation | None:
        """The operation of a workload, or None when there is no such thing."""
        service = self.services.get(workload)
        return service.operations.get(name) if service else None

    def _missing(self, where: str, workload: str, operation: str) -> list[str]:
        if self.operation(workload, operation) is not None:
            return []
        known = ", ".join(self.services[workload].operations) if workload in self.services else ", ".join(self.services)
        return [f"{where}: no operation {operation!r} of {workload!r}; known: {known}"]

    def _bad_calls(self) -> list[str]:
        bad: list[str] = []
        for workload, service in self.services.items():
            if service.program is not None and service.program not in self.programs:
                bad.append(f"{workload}: unknown program {service.program!r}; known: {', '.join(self.programs)}")
            for name, operation in service.operations.items():
                for call in operation.calls:
                    bad += self._missing(f"{workload} {name}", call.to, call.operation)
            for item in service.consumes:
                bad += self._missing(f"{workload} consumes {item.topic}", workload, item.operation)
        return bad

    def _bad_journeys(self) -> list[str]:
        bad: list[str] = []
        for name, journey in self.journeys.items():
            where = f"journey {name}"
            if journey.entry is not None:
                bad += self._missing(where, journey.entry.workload, journey.entry.operation)
            if journey.follows is not None and journey.follows not in self.journeys:
                bad.append(f"{where}: follows unknown journey {journey.follows!r}; known: {', '.join(self.journeys)}")
            for effect in journey.verify:
                bad += self._missing(where, effect.service, effect.operation)
        return bad + [f"slo of unknown journey {name!r}" for name in self.slo if name not in self.journeys]

    def _bad_flags(self) -> list[str]:
        if self.flags is None:
            return []
        effects = [(name, effect) for name, items in self.flags.effects.items() for effect in items]
        bad = [f"flag {name}: unknown service {e.service!r}" for name, e in effects if e.service not in self.services]
        for name, effect in effects:
            if effect.operation is not None and effect.service in self.services:
                bad += self._missing(f"flag {name}", effect.service, effect.operation)
        return bad
