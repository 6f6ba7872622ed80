"""Services, Endpoints, EndpointSlices, Ingresses, NetworkPolicies: defaults and rules. Addresses are allocated in admission."""

import ipaddress
from typing import Any

from itbench.kube.client import Obj
from itbench.kube.kinds.addresses import ADDRESS_TEXT, NETWORK_TEXT, check_reachable, is_address, is_network
from itbench.kube.kinds.affinity import check_label_selector
from itbench.kube.kinds.base import Behaviour
from itbench.kube.kinds.check import Check
from itbench.kube.kinds.containers import check_port_or_name
from itbench.kube.names import label1035_errors, label_errors, labels_errors, subdomain_errors, wildcard_errors

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")

# -- Service -------------------------------------------------------------------------------------------------------------


def _default_service(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        config.setdefault("timeoutSeconds", 10800)
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    kind = spec["type"]
    if kind == "ExternalName":
        return
    spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    else:
        spec.pop("allocateLoadBalancerNodePorts", None)


def _prepare_service(new: Obj, old: Obj | None) -> None:
    """What an update leaves out stays as allocated; a new type drops what it does not have."""
    spec = new.setdefault("spec", {})
    if old is None:
        return
    before = old["spec"]
    kind = spec.get("type", "ClusterIP")
    if kind == "ExternalName":
        if before.get("type") != "ExternalName":
            for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"):
                if spec.get(key) == before.get(key):
                    spec.pop(key, None)
            _keep_node_ports(spec, before, kind)
        return
    if before.get("type") != "ExternalName":
        for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if not spec.get(key) and key in before:
                spec[key] = before[key]
    _keep_node_ports(spec, before, kind)


def _keep_node_ports(spec: Obj, before: Obj, kind: str) -> None:
    if kind in ("ClusterIP", "ExternalName") and spec.get("externalTrafficPolicy") == before.get(
        "externalTrafficPolicy"
    ):
        spec.pop("externalTrafficPolicy", None)
    had = before.get("type") in ("NodePort", "LoadBalancer")
    known = {(row.get("protocol", "TCP"), row.get("port")): row.get("nodePort") for row in before.get("ports", ())}
    for port in spec.get("ports", ()):
        mine = known.get((port.get("protocol", "TCP"), port.get("port")))
        if kind in ("NodePort", "LoadBalancer"):
            if not port.get("nodePort") and mine:
                port["nodePort"] = mine
        elif had and port.get("nodePort") and port.get("nodePort") == mine:
            del port["nodePort"]


def _check_service_ports(spec: Obj, check: Check) -> None:
    ports, names, seen = spec.get("ports") or [], set(), set()
    for index, port in enumerate(ports):
        where = f"spec.ports[{index}]"
        name = port.get("name", "")
        if not name and len(ports) > 1:
            check.required(f"{where}.name")
        elif name:
            check.all_invalid(f"{where}.name", name, label_errors(name))
            if name in names:
                check.duplicate(f"{where}.name", name)
            names.add(name)
        number = port.get("port", 0)
        if not 0 < number < 65536:
            check.invalid(f"{where}.port", number, "must be between 1 and 65535, inclusive")
        check.one_of(f"{where}.protocol", port.get("protocol"), _PROTOCOLS)
        check_port_or_name(port.get("targetPort", 0), f"{where}.targetPort", check)
        if port.get("nodePort") and spec.get("type") in ("ClusterIP", None):
            check.forbidden(f"{where}.nodePort", "may not be used when `type` is 'ClusterIP'")
    for index, port in enumerate(ports):
        key = (port.get("protocol"), port.get("port"))
        if key in seen:
            rows = {"Name": "", "Protocol": port.get("protocol"), "AppProtocol": None, "Port": port.get("port")}
            check.duplicate(f"spec.ports[{index}]", {**rows, "TargetPort": 0, "NodePort": 0})
        seen.add(key)


def _check_service(obj: Obj, check: Check) -> None:
    spec = obj["spec"]
    kind = spec.get("type")
    headless = spec.get("clusterIP") == "None"
    if not spec.get("ports") and not headless and kind != "ExternalName":
        check.required("spec.ports")
    if kind == "LoadBalancer" and headless:
        check.invalid("spec.clusterIPs[0]", "None", "may not be set to 'None' for LoadBalancer services")
    if kind == "NodePort" and headless:
        check.invalid("spec.clusterIPs[0]", "None", "may not be set to 'None' for NodePort services")
    if kind == "ExternalName":
        _check_external(spec, check)
    _check_service_ports(spec, check)
    for value, text in labels_errors(spec.get("selector") or {}):
        check.invalid("spec.selector", value, text)
    check.one_of("spec.sessionAffinity", spec.get("sessionAffinity"), ("ClientIP", "None"))
    check.one_of("spec.type", kind, _TYPES)
    address = spec.get("clusterIP", "")
    if address not in ("", "None") and kind != "ExternalName" and not is_address(address):
        check.invalid("spec.clusterIPs[0]", address, ADDRESS_TEXT)
    seconds = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
    if seconds is not None and not 0 < seconds <= 86400:
        field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        check.invalid(field, seconds, "must be greater than 0 and less than 86400")
    _check_service_addresses(spec, check)
    outside = kind in ("NodePort", "LoadBalancer") or bool(spec.get("externalIPs"))
    if spec.get("externalTrafficPolicy") and not outside:
        value = spec["externalTrafficPolicy"]
        check.invalid("spec.externalTrafficPolicy", value, "may only be set for externally-accessible services")
    for key, values in (
        ("externalTrafficPolicy", ("Cluster", "Local")),
        ("internalTrafficPolicy", ("Cluster", "Local")),
    ):
        if key in spec:
            check.one_of(f"spec.{key}", spec[key], values)


def _check_service_addresses(spec: Obj, check: Check) -> None:
    for index, text in enumerate(spec.get("externalIPs") or ()):
        if not is_address(text):
            check.invalid(f"spec.externalIPs[{index}]", text, ADDRESS_TEXT)
        else:
            check_reachable(text, f"spec.externalIPs[{index}]", check)
    for index, text in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        if not is_network(text.strip()):
            check.invalid(f"spec.LoadBalancerSourceRanges[{index}]", text, NETWORK_TEXT)
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        check.one_of(f"spec.ipFamilies[{index}]", family, ("IPv4", "IPv6"))
    policies = ("PreferDualStack", "RequireDualStack", "SingleStack")
    check.one_of("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), policies, required=False)


def _check_external(spec: Obj, check: Check) -> None:
    if spec.get("clusterIP"):
        check.forbidden("spec.clusterIPs[0]", "may not be set for ExternalName services")
    name = str(spec.get("externalName", ""))
    if not name:
        check.required("spec.externalName")
    else:
        check.all_invalid("spec.externalName", name, subdomain_errors(name.removesuffix(".")))


def _check_service_update(new: Obj, old: Obj, check: Check) -> None:
    before, after = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
    if new["spec"].get("type") != "ExternalName" and old["spec"].get("type") != "ExternalName" and before != after:
        check.invalid("spec.clusterIPs[0]", [after] if after else [], "may not change once set") if before else None


# -- EndpointSlice -------------------------------------------------------------------------------------------------------


def _default_slice(obj: Obj) -> None:
    for port in obj.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def _check_slice(obj: Obj, check: Check) -> None:
    kind = obj.get("addressType", "")
    check.one_of("addressType", kind, ("FQDN", "IPv4", "IPv6"))
    for index, port in enumerate(obj.get("ports") or ()):
        if port.get("name"):
            check.all_invalid(f"ports[{index}].name", port["name"], label_errors(port["name"]))
        check.one_of(f"ports[{index}].protocol", port.get("protocol"), _PROTOCOLS)
    for index, row in enumerate(obj.get("endpoints") or ()):
        addresses = row.get("addresses") or []
        if not addresses:
            check.required(f"endpoints[{index}].addresses", "must contain at least 1 address")
        for at, address in enumerate(addresses):
            where = f"endpoints[{index}].addresses[{at}]"
            if kind in ("IPv4", "IPv6") and not is_address(address):
                check.invalid(where, address, ADDRESS_TEXT)
            elif kind in ("IPv4", "IPv6"):
                if (kind == "IPv4") == (":" in address):
                    check.invalid(where.removesuffix(f"[{at}]"), address, f"must be an {kind} address")
                check_reachable(address, where, check)


def _check_slice_update(new: Obj, old: Obj, check: Check) -> None:
    check.immutable("addressType", new.get("addressType"), old.get("addressType"))


def _default_endpoints(obj: Obj) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _check_endpoints(obj: Obj, check: Check) -> None:
    for index, subset in enumerate(obj.get("subsets") or ()):
        where = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            check.required(where, "must specify `addresses` or `notReadyAddresses`")
        for key in ("addresses", "notReadyAddresses"):
            for at, row in enumerate(subset.get(key) or ()):
                text, field = row.get("ip", ""), f"{where}.{key}[{at}].ip"
                if not is_address(text):
                    check.invalid(field, text, ADDRESS_TEXT)
                    check.invalid(field, text, "must be a valid IP address")
                else:
                    check_reachable(text, field, check)
        for at, port in enumerate(subset.get("ports") or ()):
            number = port.get("port", 0)
            if not 0 < number < 65536:
                check.invalid(f"{where}.ports[{at}].port", number, "must be between 1 and 65535, inclusive")
            check.one_of(f"{where}.ports[{at}].protocol", port.get("protocol"), ("TCP", "UDP", "SCTP"))


# -- Ingress -------------------------------------------------------------------------------------------------------------


def _check_backend(backend: Obj, field: str, check: Check) -> None:
    service, resource = backend.get("service"), backend.get("resource")
    if service and resource:
        check.invalid(field, "", "cannot set both resource and service backends")
    elif service:
        name = service.get("name", "")
        if not name:
            check.required(f"{field}.service.name")
        else:
            check.all_invalid(f"{field}.service.name", name, label1035_errors(name))
        port = service.get("port") or {}
        if not port.get("name") and not port.get("number"):
            check.required(field, "port name or number is required")
        elif port.get("name") and port.get("number"):
            check.invalid(field, "", "cannot set both port name & port number")
    elif not resource:
        check.invalid(field, "", "resource or service backend is required")


def _check_path(path: Obj, field: str, check: Check) -> None:
    kind, text = path.get("pathType"), path.get("path", "")
    if not kind:
        check.required(f"{field}.pathType", "pathType must be specified")
        return
    if kind in ("Exact", "Prefix"):
        if not text.startswith("/"):
            check.invalid(f"{field}.path", text, "must be an absolute path")
        for bad in ("//", "/./", "/../", "%2f", "%2F"):
            if bad in text:
                check.invalid(f"{field}.path", text, f"must not contain '{bad}'")
    elif kind != "ImplementationSpecific":
        check.unsupported(f"{field}.pathType", kind, ("Exact", "ImplementationSpecific", "Prefix"))
    _check_backend(path.get("backend") or {}, f"{field}.backend", check)


def _check_ingress_tls(rows: list[Obj], check: Check) -> None:
    for index, row in enumerate(rows):
        for at, host in enumerate(row.get("hosts") or ()):
            errors = wildcard_errors(host) if host.startswith("*") else subdomain_errors(host)
            check.all_invalid(f"spec.tls[{index}].hosts[{at}]", host, errors)
        if row.get("secretName"):
            name = row["secretName"]
            check.all_invalid(f"spec.tls[{index}].secretName", name, subdomain_errors(name))


def _check_ingress_class(obj: Obj, check: Check) -> None:
    controller = (obj.get("spec") or {}).get("controller", "")
    if not controller:
        check.required("spec.controller")
    elif "/" not in controller:
        check.invalid("spec.controller", controller, 'must be a domain-prefixed path (such as "acme.io/foo")')


def _check_ingress(obj: Obj, check: Check) -> None:
    spec = obj.get("spec") or {}
    if not spec.get("rules") and "defaultBackend" not in spec:
        check.invalid("spec", spec.get("rules"), "either `defaultBackend` or `rules` must be specified")
    if "defaultBackend" in spec:
        _check_backend(spec["defaultBackend"], "spec.defaultBackend", check)
    for index, rule in enumerate(spec.get("rules") or ()):
        where = f"spec.rules[{index}]"
        host = rule.get("host", "")
        if host and is_address(host):
            check.invalid(f"{where}.host", host, "must be a DNS name, not an IP address")
        elif host.startswith("*"):
            check.all_invalid(f"{where}.host", host, wildcard_errors(host))
        elif host:
            check.all_invalid(f"{where}.host", host, subdomain_errors(host))
        http = rule.get("http")
        if http is not None and not http.get("paths"):
            check.required(f"{where}.http.paths")
        for at, path in enumerate((http or {}).get("paths") or ()):
            _check_path(path, f"{where}.http.paths[{at}]", check)
    _check_ingress_tls(spec.get("tls") or [], check)
    if spec.get("ingressClassName"):
        name = spec["ingressClassName"]
        check.all_invalid("spec.ingressClassName", name, subdomain_errors(name))


# -- NetworkPolicy -------------------------------------------------------------------------------------------------------


def _default_network_policy(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]:
        for port in rule.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _check_peer(peer: Obj, field: str, check: Check) -> None:
    found = 0
    for key in ("podSelector", "namespaceSelector"):
        if key in peer:
            found += 1
            check_label_selector(peer[key], f"{field}.{key}", check)
    block = peer.get("ipBlock")
    if block is not None:
        _check_block(block, f"{field}.ipBlock", check)
        if found:
            check.forbidden(field, "may not specify both ipBlock and another peer")
        found += 1
    if not found:
        check.required(field, "must specify a peer")


def _network(text: str) -> Any:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _check_block(block: Obj, field: str, check: Check) -> None:
    text = block.get("cidr", "")
    if not text:
        check.required(f"{field}.cidr")
        return
    whole = _network(text) if "/" in text else None
    if whole is None:
        check.invalid(f"{field}.cidr", text, NETWORK_TEXT)
        return
    for index, row in enumerate(block.get("except") or ()):
        part = _network(row) if "/" in row else None
        if part is None:
            check.invalid(f"{field}.except[{index}]", row, NETWORK_TEXT)
        elif part.version != whole.version or not part.subnet_of(whole) or part == whole:
            check.invalid(f"{field}.except[{index}]", row, "must be a strict subset of `cidr`")


def _check_end_port(port: Obj, field: str, check: Check) -> None:
    start, end = port.get("port"), port.get("endPort")
    if end is None:
        return
    if start is None:
        check.invalid(field, end, "may not be specified when `port` is not specified")
    elif isinstance(start, str):
        check.invalid(field, end, "may not be specified when `port` is non-numeric")
    elif end < start:
        check.invalid(field, start, "must be greater than or equal to `port`")


def _check_network_policy(obj: Obj, check: Check) -> None:
    spec = obj["spec"]
    check_label_selector(spec.get("podSelector"), "spec.podSelector", check)
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            where = f"spec.{direction}[{index}]"
            for at, port in enumerate(rule.get("ports") or ()):
                check.one_of(f"{where}.ports[{at}].protocol", port.get("protocol"), ("TCP", "UDP", "SCTP"))
                if "port" in port:
                    check_port_or_name(port["port"], f"{where}.ports[{at}].port", check)
                _check_end_port(port, f"{where}.ports[{at}].endPort", check)
            for at, peer in enumerate(rule.get(peers) or ()):
                _check_peer(peer, f"{where}.{peers}[{at}]", check)
    for index, kind in enumerate(spec.get("policyTypes") or ()):
        if kind not in ("Ingress", "Egress"):
            check.unsupported(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress"))


SERVICE = Behaviour(
    default=_default_service,
    prepare=_prepare_service,
    validate=_check_service,
    validate_update=_check_service_update,
    name_errors=label1035_errors,
)
ENDPOINTS = Behaviour(default=_default_endpoints, validate=_check_endpoints)
ENDPOINTSLICE = Behaviour(
    default=_default_slice, validate=_check_slice, validate_update=_check_slice_update, generation=True
)
INGRESS = Behaviour(validate=_check_ingress, generation=True)
INGRESSCLASS = Behaviour(validate=_check_ingress_class, generation=True)
NETWORKPOLICY = Behaviour(default=_default_network_policy, validate=_check_network_policy, generation=True)
