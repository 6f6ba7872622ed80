"""One truth for reachability: what happens to a connection from a pod to a host and port.

Computed from Services, EndpointSlices, NetworkPolicies and what containers listen on. Probes, flow wiring, exec and logs ask it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Literal

from itbench.kube.client import Obj
from itbench.kube.selectors import matches
from itbench.world import dns
from itbench.world.objects import INGRESSES, POLICIES, Objects, key_of

Verdict = Literal["ok", "refused", "timeout", "nxdomain", "denied", "tls"]
CLUSTER_DOMAIN = "cluster.local"
API = ("default", "kubernetes")
"""Namespace and name of the Service in front of the API server."""


@dataclass(frozen=True, slots=True)
class Target:
    """A pod and port that a connection may end at."""

    namespace: str
    pod: str
    port: int


@dataclass(frozen=True, slots=True)
class Reach:
    """The answer: a verdict, where the connection may go, and the addresses that the name stands for."""

    verdict: Verdict
    targets: tuple[Target, ...] = ()
    addresses: tuple[str, ...] = ()


Listening = Callable[[str, str, int], bool]
"""(namespace, pod, port) -> whether something listens there now."""


class Net:
    """Reachability in one cluster.

    Args:
        objects: the mirror.
        listening: asks the kubelets.
        externals: names outside the cluster that exist, with the verdict of a connection.
        names: what pods are told about names; None: what stands.
    """

    def __init__(
        self,
        objects: Objects,
        listening: Listening,
        externals: dict[str, Verdict] | None = None,
        names: dns.Names | None = None,
    ) -> None:
        self.objects, self.listening, self.externals, self.names = objects, listening, externals or {}, names

    def reach(self, source: Obj | None, host: str, port: int) -> Reach:
        """What happens to a connection.

        Args:
            source: the pod that connects; None stands for a client outside that may reach everything.
            host: a Service name in any of its forms, a pod or cluster address, `localhost`.
            port: destination port.
        """
        if not host:
            return Reach("nxdomain")
        if host in ("localhost", "127.0.0.1", "::1", "0.0.0.0"):
            return self._local(source, port)
        if _is_address(host):
            return self._address(source, host, port)
        told = self._told(source, host)
        if told in (dns.NXDOMAIN, dns.SERVFAIL):
            return Reach("nxdomain")
        if told == dns.TIMEOUT:
            return Reach("timeout")
        if told != dns.ORDINARY:
            return self._address(source, told, port)
        namespace = source["metadata"].get("namespace", "default") if source else "default"
        service = self.service(host, namespace)
        if service is not None:
            return self._service(source, service, port)
        pod = self._pod_name(host, namespace)
        if pod is not None:
            return self._to_pods(source, [Target(*key_of(pod), port)], (pod["status"]["podIP"],))
        outside = self.externals.get(host)
        return Reach(outside, (), ("203.0.113.10",)) if outside else Reach("nxdomain")

    def resolve(self, source: Obj | None, host: str) -> tuple[str, ...]:
        """Addresses of a name as the pod's resolver gives them."""
        if _is_address(host):
            return (host,)
        if host == "localhost":
            return ("127.0.0.1",)
        told = self._told(source, host)
        if told != dns.ORDINARY:
            return (told,) if _is_address(told) else ()
        namespace = source["metadata"].get("namespace", "default") if source else "default"
        service = self.service(host, namespace)
        if service is None:
            pod = self._pod_name(host, namespace)
            if pod is not None:
                return (pod["status"]["podIP"],)
            return ("203.0.113.10",) if host in self.externals else ()
        if service["spec"].get("type") == "ExternalName":
            return self.resolve(source, service["spec"].get("externalName", ""))
        address = service["spec"].get("clusterIP")
        if address and address != "None":
            return (address,)
        return tuple(a for _, e in self._endpoints(service) for a in e.get("addresses", ()))

    def _told(self, source: Obj | None, host: str) -> str:
        """What the DNS servers of the cluster say instead of what stands."""
        if self.names is None:
            return dns.ORDINARY
        return self.names.ask(source, host, self._stands)

    def _stands(self, name: str) -> bool:
        """Whether an absolute name is one of the cluster or one outside that exists."""
        if name.endswith(f".svc.{dns.CLUSTER}"):
            return bool(self.service(name, "") or self._pod_name(name, ""))
        return name.rstrip(".") in self.externals

    def service(self, host: str, namespace: str) -> Obj | None:
        """The Service of a name: `svc`, `svc.ns`, `svc.ns.svc`, `svc.ns.svc.cluster.local`."""
        parts = host.rstrip(".").removesuffix(f".{CLUSTER_DOMAIN}").removesuffix(".svc").split(".")
        if len(parts) == 1:
            return self.objects.get("services", namespace, parts[0])
        return self.objects.get("services", parts[1], parts[0]) if len(parts) == 2 else None

    def _pod_name(self, host: str, namespace: str) -> Obj | None:
        """A pod that has a name of its own through a headless Service (`web-0.web`), or its own host name."""
        parts = host.rstrip(".").removesuffix(f".{CLUSTER_DOMAIN}").removesuffix(".svc").split(".")
        if len(parts) > 3:
            return None
        home = parts[2] if len(parts) == 3 else namespace
        pod = self.objects.get("pods", home, parts[0])
        if pod is None or not (pod.get("status") or {}).get("podIP"):
            return None
        return pod if len(parts) == 1 or pod["spec"].get("subdomain") == parts[1] else None

    def backend(self, namespace: str, name: str, path: str) -> tuple[str, int] | None:
        """The Service and port to which an Ingress sends a path; None where it is missing or no rule fits."""
        spec = (self.objects.get(INGRESSES, namespace, name) or {}).get("spec") or {}
        rules = [item for rule in spec.get("rules") or () for item in (rule.get("http") or {}).get("paths") or ()]
        fitting = [item for item in rules if _covers(item, path)]
        best = max(
            fitting, key=lambda item: (item.get("pathType") == "Exact", len(item.get("path") or "/")), default=None
        )
        chosen = (best["backend"] if best else spec.get("defaultBackend") or {}).get("service")
        if chosen is None:
            return None
        port = chosen.get("port") or {}
        if "number" in port:
            return chosen["name"], int(port["number"])
        service = self.objects.get("services", namespace, chosen["name"]) or {"spec": {}}
        named = {item.get("name"): item["port"] for item in service["spec"].get("ports") or ()}
        return chosen["name"], int(named.get(port.get("name"), 0))

    # ---- kinds of destination

    def _local(self, source: Obj | None, port: int) -> Reach:
        if source is None:
            return Reach("refused")
        namespace, name = key_of(source)
        target = Target(namespace, name, port)
        return Reach("ok" if self.listening(namespace, name, port) else "refused", (target,), ("127.0.0.1",))

    def _address(self, source: Obj | None, host: str, port: int) -> Reach:
        service = self.objects.service_by_ip(host)
        if service is not None:
            return self._service(source, service, port)
        pod = self.objects.pod_by_ip(host)
        if pod is None:
            return Reach("timeout", (), (host,))
        return self._to_pods(source, [Target(*key_of(pod), port)], (host,))

    def _service(self, source: Obj | None, service: Obj, port: int) -> Reach:
        spec = service["spec"]
        if spec.get("type") == "ExternalName":
            return self.reach(source, spec.get("externalName", ""), port)
        addresses = self.resolve(source, service["metadata"]["name"] + "." + service["metadata"]["namespace"])
        headless = spec.get("clusterIP") == "None"
        entry = next((item for item in spec.get("ports") or () if item["port"] == port), None)
        if entry is None and not headless:
            # No rule of the node's proxy matches: the packet leaves for an address that nobody owns.
            return Reach("timeout", (), addresses)
        targets: list[Target] = []
        for number, endpoint in self._endpoints(service, entry.get("name", "") if entry else None):
            reference = endpoint.get("targetRef") or {}
            if reference.get("kind") == "Pod":
                home = reference.get("namespace", service["metadata"]["namespace"])
                targets.append(Target(home, reference["name"], port if headless else number))
        if not targets:
            return Reach("nxdomain" if headless else "refused", (), addresses)
        return self._to_pods(source, targets, addresses)

    def _endpoints(self, service: Obj, port_name: str | None = None) -> list[tuple[int, Obj]]:
        """(target port, endpoint) of every ready endpoint."""
        found: list[tuple[int, Obj]] = []
        meta = service["metadata"]
        for piece in self.objects.slices(meta["namespace"], meta["name"]):
            numbers = [
                p["port"] for p in piece.get("ports") or () if port_name is None or (p.get("name") or "") == port_name
            ]
            for endpoint in piece.get("endpoints") or ():
                if (endpoint.get("conditions") or {}).get("ready") is not False and (numbers or port_name is None):
                    found.append((numbers[0] if numbers else 0, endpoint))
        return found

    def _to_pods(self, source: Obj | None, targets: list[Target], addresses: tuple[str, ...]) -> Reach:
        allowed = [target for target in targets if self.allowed(source, target)]
        if not allowed:
            return Reach("denied", tuple(targets), addresses)
        open_ = [target for target in allowed if self.listening(target.namespace, target.pod, target.port)]
        return Reach("ok" if open_ else "refused", tuple(open_ or allowed), addresses)

    def api(self, source: Obj, host: str, port: int) -> Reach | None:
        """A connection of a pod to the API server (no pod: a node's own network); None when it goes elsewhere."""
        service = self.objects.get("services", *API)
        ends = [(piece["ports"][0]["port"], piece["endpoints"][0]) for piece in self.objects.slices(*API)]
        if service is None or not ends:
            return None
        number, address = ends[0][0], ends[0][1]["addresses"][0]
        known = {(service["spec"].get("clusterIP"), row["port"]) for row in service["spec"]["ports"]}
        found = self.resolve(source, host)
        if not any((one, port) in known | {(address, number)} for one in found):
            return None
        peer = {"metadata": {}, "spec": {"containers": []}, "status": {"podIP": address}}
        return Reach("ok" if self._passes(source, peer, number, "Egress") else "denied", (), found)

    # ---- network policies

    def allowed(self, source: Obj | None, target: Target) -> bool:
        """Whether NetworkPolicies let a connection through, both ways out and in."""
        pod = self.objects.get("pods", target.namespace, target.pod)
        if source is None or pod is None or key_of(source) == key_of(pod):
            return True
        return self._passes(source, pod, target.port, "Egress") and self._passes(pod, source, target.port, "Ingress")

    def _passes(self, subject: Obj, peer: Obj, port: int, direction: str) -> bool:
        namespace, rules_key, peer_key = subject["metadata"].get("namespace", ""), direction.lower(), "to"
        if direction == "Ingress":
            peer_key = "from"
        isolated = False
        for policy in self.objects.within(POLICIES, namespace):
            spec = policy["spec"]
            types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if "egress" in spec else [])]
            if direction not in types or not matches(spec.get("podSelector") or {}, subject["metadata"].get("labels")):
                continue
            isolated = True
            for rule in spec.get(rules_key) or ():
                # The port is always that of the destination, whichever side is the subject.
                owner = peer if direction == "Egress" else subject
                if self._port_matches(rule, port, owner) and self._peer_matches(rule.get(peer_key), peer, namespace):
                    return True
        return not isolated

    @staticmethod
    def _port_matches(rule: Obj, port: int, owner: Obj) -> bool:
        ports = rule.get("ports")
        if not ports:
            return True
        named = {p.get("name"): p["containerPort"] for c in owner["spec"]["containers"] for p in c.get("ports") or ()}
        for item in ports:
            wanted = item.get("port")
            low = named.get(wanted, -1) if isinstance(wanted, str) else wanted
            if wanted is None or low == port or (item.get("endPort") and low <= port <= item["endPort"]):
                return True
        return False

    def _peer_matches(self, peers: list[Obj] | None, pod: Obj, namespace: str) -> bool:
        if not peers:
            return True
        return any(self._one_peer(peer, pod, namespace) for peer in peers)

    def _one_peer(self, peer: Obj, pod: Obj, namespace: str) -> bool:
        if "ipBlock" in peer:
            address = (pod.get("status") or {}).get("podIP")
            block = peer["ipBlock"]
            if not address or ip_address(address) not in ip_network(block["cidr"], strict=False):
                return False
            return all(ip_address(address) not in ip_network(cut, strict=False) for cut in block.get("except") or ())
        home = pod["metadata"].get("namespace", "")
        if not home:
            return False  # an address of a node: no selector finds it
        if "namespaceSelector" in peer:
            space = self.objects.get("namespaces", "", home)
            labels = (space or {"metadata": {}})["metadata"].get("labels") or {"kubernetes.io/metadata.name": home}
            if not matches(peer["namespaceSelector"], labels):
                return False
        elif home != namespace:
            return False
        return "podSelector" not in peer or matches(peer["podSelector"], pod["metadata"].get("labels"))


def _covers(rule: Obj, path: str) -> bool:
    """Whether a path rule of an Ingress fits: all of it (Exact), or whole elements from the left."""
    own = rule.get("path") or "/"
    if rule.get("pathType") == "Exact":
        return path == own
    elements = [part for part in own.split("/") if part]
    return [part for part in path.split("/") if part][: len(elements)] == elements


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
