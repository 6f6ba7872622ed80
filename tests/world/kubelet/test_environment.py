"""The environment of containers, as a kubelet builds it."""

from typing import Any

from itbench.kube.client import Client
from itbench.world.estate import World

STORE = {
    "API_GATE_SERVICE_PORT": "9000",
    "API_GATE_SERVICE_PORT_GRPC": "9000",
    "API_GATE_SERVICE_PORT_DNS_UDP": "53",
    "API_GATE_PORT": "tcp://{ip}:9000",
    "API_GATE_PORT_9000_TCP": "tcp://{ip}:9000",
    "API_GATE_PORT_9000_TCP_PROTO": "tcp",
    "API_GATE_PORT_9000_TCP_PORT": "9000",
    "API_GATE_PORT_9000_TCP_ADDR": "{ip}",
    "API_GATE_PORT_53_UDP": "udp://{ip}:53",
    "API_GATE_PORT_53_UDP_PROTO": "udp",
    "API_GATE_PORT_53_UDP_PORT": "53",
    "API_GATE_PORT_53_UDP_ADDR": "{ip}",
    "API_GATE_SERVICE_HOST": "{ip}",
}


def _create(kubectl: Client, name: str, **spec: Any) -> None:
    body = {"containers": [{"name": "main", "image": "busybox", "command": ["sleep", "inf"]}], **spec}
    meta = {"name": name, "namespace": "toy"}
    kubectl.create("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body}, "toy")


def _env(world: World, name: str) -> dict[str, str]:
    pod = next(pod for pod in world.pods("main") if pod.name == name)
    return pod.containers["main"].env


def test_every_port_of_every_service_is_in_the_environment_by_number_and_by_name(world: World, kubectl: Client) -> None:
    ports = [{"name": "grpc", "port": 9000}, {"name": "dns-udp", "port": 53, "protocol": "UDP"}]
    for name, more in (("api-gate", {}), ("headless", {"clusterIP": "None"})):
        meta = {"name": name, "namespace": "toy"}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": ports, **more}}
        kubectl.create("services", service, "toy")
    _create(kubectl, "linked")
    world.advance(world.now + 10)
    env = _env(world, "linked")
    address = kubectl.get("services", "api-gate", "toy")["spec"]["clusterIP"]
    assert {k: v for k, v in env.items() if k.startswith("API_GATE")} == {
        k: v.format(ip=address) for k, v in STORE.items()
    }
    assert env["KUBERNETES_SERVICE_PORT_HTTPS"] == env["KUBERNETES_PORT_443_TCP_PORT"] == "443"
    assert env["WEB_PORT_80_TCP_PROTO"] == "tcp"
    assert not [name for name in env if name.startswith(("HEADLESS", "WEB_SERVICE_PORT_"))]


def test_without_service_links_only_the_api_server_is_there(world: World, kubectl: Client) -> None:
    _create(kubectl, "alone", enableServiceLinks=False)
    world.advance(world.now + 10)
    names = {name for name in _env(world, "alone") if not name.startswith("KUBERNETES_")}
    assert names == {"PATH", "HOSTNAME", "HOME"}
