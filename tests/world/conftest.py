"""A toy shop of two services, small enough to follow by hand: `web` calls `api`."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from itbench.core.documents.app import App
from itbench.kube.client import Client
from itbench.world.estate import World

TOY = """
schema: itbench/app/v1
id: toy
namespace: toy
programs:
  web: {image: example.com/web, tags: ["1.0", "1.1"], start_s: 1.0, listens: [{port: 8080}], process: /web,
        log: {error: "{operation} failed: {reason}", background: [{every_s: 20, message: "tick"}]}}
  api: {image: example.com/api, tags: ["1.0"], start_s: 1.0, listens: [{port: 9000, protocol: grpc}], process: /api,
        needs: {env: [MODE]}, memory_mb: {base: 20, per_queued: 0.05}}
  flagd: {image: example.com/flagd, tags: ["1.0"], listens: [{port: 8013, protocol: grpc}], process: /flagd}
  flagd-ui: {image: example.com/flagd-ui, tags: ["1.0"], listens: [{port: 4000}], process: /ui}
services:
  deployment/web:
    program: web
    capacity: {workers: 4}
    operations:
      GET /:
        service_ms: 20
        calls: [{to: deployment/api, operation: Get, address: {env: API_ADDR},
                 timeout_s: {env: API_TIMEOUT_MS, default: 1000, unit: ms}, retries: {env: API_RETRIES, default: 1, max: 4}}]
  deployment/api:
    program: api
    protocol: grpc
    capacity: {workers: 2}
    queue_s: {env: QUEUE, default: 10, unit: s}
    operations: {Get: {service_ms: 40, cpu_ms: 20}}
flags:
  service: deployment/flagd
  container: flagd
  file: /etc/flagd/flags.json
  address: {env: FLAGD_HOST, default: flagd, port: 8013}
  editor: {container: flagd-ui, port: 4000}
  effects: {apiFailure: [{service: deployment/api, operation: Get, errors: value, log: "flag is on"}]}
edge: {limits: {configmap: edge-limits}}
journeys:
  home: {entry: {service: web, port: 80, workload: deployment/web, operation: GET /}, rate: 20, timeout_s: 10}
slo: {home: {success: 0.99, p99_ms: 500}}
"""

MANIFESTS = """
apiVersion: v1
kind: Namespace
metadata: {name: toy}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: edge-limits, namespace: toy}
data: {home: "off"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: flags, namespace: toy}
data:
  flags.json: |
    {"flags": {"apiFailure": {"state": "ENABLED", "variants": {"on": true, "off": false}, "defaultVariant": "off"}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: toy, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: example.com/web:1.0
          env: [{name: API_ADDR, value: "api:9000"}]
          ports: [{containerPort: 8080}]
          readinessProbe: {tcpSocket: {port: 8080}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: toy}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: toy, labels: {app: api}}
spec:
  replicas: 2
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers:
        - name: api
          image: example.com/api:1.0
          env: [{name: MODE, value: fast}]
          resources: {limits: {cpu: "2", memory: 64Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: api, namespace: toy}
spec: {selector: {app: api}, ports: [{port: 9000}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: flagd, namespace: toy}
spec:
  selector: {matchLabels: {app: flagd}}
  template:
    metadata: {labels: {app: flagd}}
    spec:
      initContainers:
        - name: init-config
          image: busybox:1.37
          command: [sh, -c, "cp /config-ro/flags.json /config-rw/flags.json"]
          volumeMounts: [{name: ro, mountPath: /config-ro}, {name: rw, mountPath: /config-rw}]
      containers:
        - name: flagd
          image: example.com/flagd:1.0
          volumeMounts: [{name: rw, mountPath: /etc/flagd}]
        - name: flagd-ui
          image: example.com/flagd-ui:1.0
          volumeMounts: [{name: rw, mountPath: /app/data}]
      volumes: [{name: ro, configMap: {name: flags}}, {name: rw, emptyDir: {}}]
---
apiVersion: v1
kind: Service
metadata: {name: flagd, namespace: toy}
spec: {selector: {app: flagd}, ports: [{name: grpc, port: 8013}, {name: ui, port: 4000}]}
"""

PLURALS = {
    "Namespace": "namespaces",
    "ConfigMap": "configmaps",
    "Deployment": "deployments.apps",
    "Service": "services",
}


def apply_all(client: Client, text: str) -> None:
    """Create every object of a multi-document manifest."""
    for obj in yaml.safe_load_all(text):
        if obj:
            client.create(PLURALS[obj["kind"]], obj, obj["metadata"].get("namespace", ""))


def toy_app() -> App:
    """The toy's document."""
    return App.model_validate(yaml.safe_load(TOY))


def make_world(load: dict[str, float] | None = None, **more: Any) -> World:
    """A settled toy world with traffic."""
    world = World.create(toy_app(), seed=more.pop("seed", 0), nodes=2, **more)
    apply_all(world.planes["main"].client("kubectl", "system:admin"), MANIFESTS)
    world.settle()
    world.set_load(load or {"home": 20.0})
    return world


@pytest.fixture(scope="session")
def settled() -> dict[str, Any]:
    """The saved state of a settled toy world with traffic; worlds of single tests start from it."""
    return make_world().save()


@pytest.fixture
def world(settled: dict[str, Any]) -> World:
    """A settled toy world with traffic on its one journey."""
    return World.load(settled)


@pytest.fixture
def kubectl(world: World) -> Client:
    """A client of the toy's control plane."""
    return world.planes["main"].client("kubectl", "system:admin")


@pytest.fixture(scope="session")
def new_world() -> Callable[..., World]:
    """Makes another settled toy world (with its own seed, for one)."""
    return make_world


def pods_of(kubectl: Client, app: str) -> list[dict[str, Any]]:
    """Pods with the label `app`."""
    return kubectl.list("pods", "toy", labels=f"app={app}")


def success(world: World, seconds: float) -> float:
    """Mean success of the journey over the next seconds."""
    start = world.now
    world.advance(start + seconds)
    samples = world.journeys(start, world.now)["home"]
    return sum(sample.ok for sample in samples) / len(samples)


@pytest.fixture(scope="session")
def measure() -> Callable[[World, float], float]:
    """Mean success of the journey over the next seconds."""
    return success


@pytest.fixture(scope="session")
def pods() -> Callable[[Client, str], list[dict[str, Any]]]:
    """Pods of the toy by their label `app`."""
    return pods_of


def events_of(kubectl: Client, name: str) -> list[tuple[str, str]]:
    """(reason, message) of the events about objects whose name starts so."""
    found = kubectl.list("events", "toy")
    return [(e["reason"], e.get("message", "")) for e in found if e["involvedObject"]["name"].startswith(name)]


@pytest.fixture(scope="session")
def events() -> Callable[[Client, str], list[tuple[str, str]]]:
    """(reason, message) of the events about objects whose name starts so."""
    return events_of
