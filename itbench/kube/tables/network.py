"""Rows of Services, Endpoints, EndpointSlices, Ingresses, NetworkPolicies."""

from itbench.kube.client import Obj
from itbench.kube.selectors import format_selector
from itbench.kube.tables.cells import NONE, UNSET, Cells, age, joined, labels_text

_SHOWN = 3


def _ingress_addresses(obj: Obj) -> list[str]:
    rows = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return [text for row in rows if (text := row.get("ip") or row.get("hostname"))]


def _external(obj: Obj) -> str:
    spec = obj.get("spec") or {}
    kind, fixed = spec.get("type", "ClusterIP"), spec.get("externalIPs") or []
    if kind == "ExternalName":
        return str(spec.get("externalName", ""))
    if kind == "LoadBalancer":
        found = _ingress_addresses(obj)
        return ",".join([*found, *fixed]) or "<pending>"
    return ",".join(fixed) or NONE


def _ports(spec: Obj) -> str:
    rows = []
    for port in spec.get("ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        rows.append(f"{port['port']}{node}/{port.get('protocol', 'TCP')}")
    return ",".join(rows) or NONE


def service(obj: Obj) -> Cells:
    """Type, addresses, ports."""
    spec = obj.get("spec") or {}
    address = spec.get("clusterIP") or NONE
    row = [spec.get("type", ""), address, _external(obj), _ports(spec), age(obj)]
    return [obj["metadata"]["name"], *row, labels_text(spec.get("selector"))]


def endpoints(obj: Obj) -> Cells:
    """Ready addresses with ports."""
    rows: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [row["ip"] for row in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        if not ports:
            rows += addresses
        for port in ports:
            rows += [f"{address}:{port['port']}" for address in addresses]
    return [obj["metadata"]["name"], joined(rows, _SHOWN), age(obj)]


def endpointslice(obj: Obj) -> Cells:
    """Address type, ports, addresses."""
    ports = [str(row["port"]) if row.get("port") else "*" for row in obj.get("ports") or ()]
    addresses = [address for row in obj.get("endpoints") or () for address in row.get("addresses") or ()]
    row = [obj.get("addressType", ""), joined(ports, _SHOWN, UNSET), joined(addresses, _SHOWN, UNSET)]
    return [obj["metadata"]["name"], *row, age(obj)]


def ingress(obj: Obj) -> Cells:
    """Class, hosts, address, ports."""
    spec = obj.get("spec") or {}
    hosts = [row["host"] for row in spec.get("rules") or () if row.get("host")]
    kind = spec.get("ingressClassName") or NONE
    ports = "80, 443" if spec.get("tls") else "80"
    row = [kind, joined(hosts, _SHOWN, "*"), ",".join(_ingress_addresses(obj)), ports]
    return [obj["metadata"]["name"], *row, age(obj)]


def ingressclass(obj: Obj) -> Cells:
    """Controller and parameters."""
    spec = obj.get("spec") or {}
    ref = spec.get("parameters")
    text = NONE
    if ref:
        group = f".{ref['apiGroup']}" if ref.get("apiGroup") else ""
        text = f"{ref['kind']}{group}/{ref['name']}"
    return [obj["metadata"]["name"], spec.get("controller", ""), text, age(obj)]


def networkpolicy(obj: Obj) -> Cells:
    """Pods it selects."""
    return [obj["metadata"]["name"], format_selector((obj.get("spec") or {}).get("podSelector")), age(obj)]


def servicecidr(obj: Obj) -> Cells:
    """Ranges of addresses."""
    return [obj["metadata"]["name"], ",".join((obj.get("spec") or {}).get("cidrs") or ()), age(obj)]
