"""How a webhook is reached: a Service of the world, or a URL on a host that was allowed at start; with the real texts of failure.

Called by `webhooks` (and by whoever else calls a `clientConfig`).
"""

import base64
import binascii
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from itbench.kube.admission.certificates import distrust
from itbench.kube.admission.review import CallFailed
from itbench.kube.admission.services import Services, Unreached
from itbench.kube.client import Obj
from itbench.kube.door import Request, Response
from itbench.kube.store import Store

_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, */*",
    "User-Agent": "kube-apiserver-admission",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A resolved `clientConfig`."""

    url: str
    authority: bytes
    service: str = ""
    namespace: str = ""
    port: int = 443

    @property
    def path(self) -> str:
        """Path and query."""
        parts = urlsplit(self.url)
        return f"{parts.path}?{parts.query}" if parts.query else parts.path


def place_of(config: Obj, timeout_s: int) -> Place:
    """Where a `clientConfig` points.

    Raises:
        CallFailed: its caBundle holds no certificate.
    """
    authority = _authority(config.get("caBundle") or "")
    service, tail = config.get("service"), f"?timeout={timeout_s}s"
    if service is None:
        return Place(str(config.get("url", "")) + tail, authority)
    name, namespace, port = service["name"], service["namespace"], service.get("port", 443)
    path = service.get("path") or "/"
    path = path if path.startswith("/") else f"/{path}"
    return Place(f"https://{name}.{namespace}.svc:{port}{path}{tail}", authority, name, namespace, port)


def _authority(bundle: str) -> bytes:
    try:
        raw = base64.b64decode(bundle)
    except (binascii.Error, ValueError):
        raw = b"?"
    if raw and b"-----BEGIN CERTIFICATE-----" not in raw:
        said = "unable to load root certificates: unable to parse bytes as PEM block"
        raise CallFailed(f"could not get REST client: {said}")
    return raw


def call(place: Place, body: bytes, timeout_s: int, store: Store, services: Services) -> Response:
    """Post a body.

    Raises:
        CallFailed: with the words of the real client.
    """
    try:
        return reach(place, body, timeout_s, store, services)
    except Unreached as error:
        raise CallFailed(f'failed to call webhook: Post "{place.url}": {error}') from None


def reach(place: Place, body: bytes, timeout_s: int, store: Store, services: Services) -> Response:
    """Post a body; raises Unreached with what comes after the URL in the words of the real client."""
    request = Request("POST", place.path, _HEADERS, body)
    if place.service:
        response = _call_service(place, request, store, services)
        if response.delay_s > timeout_s:
            raise Unreached("context deadline exceeded")
        return response
    outside = services.outside
    if outside is None or not outside.allows(place.url):
        address = _loopback(place.url)
        if address:  # nothing listens on the control plane's own host
            raise Unreached(f"dial tcp {address}: connect: connection refused")
        raise Unreached("context deadline exceeded")
    return outside.send(place.url, request, place.authority, float(timeout_s))


def _loopback(url: str) -> str:
    """Address and port of a URL on the loopback; empty for others."""
    parts = urlsplit(url)
    try:
        port, own = parts.port or 443, ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return ""
    return f"{parts.hostname}:{port}" if own else ""


def _call_service(place: Place, request: Request, store: Store, services: Services) -> Response:
    entry = store.get("services", place.namespace, place.service)
    if entry is None:
        raise Unreached(f'service "{place.service}" not found')
    spec = entry.object["spec"]
    if spec.get("type") == "ExternalName":
        raise Unreached('unsupported service type "ExternalName"')
    if all(row["port"] != place.port for row in spec.get("ports") or ()):
        raise Unreached(f'no service port {place.port} found for service "{place.service}"')
    address = _endpoint(store, place, spec)
    if not address or services.nodes is None:
        raise Unreached(f'no endpoints available for service "{place.service}"')
    host = f"{place.service}.{place.namespace}.svc"
    response, why = services.nodes.http(host, place.port, request)
    if response is None:
        raise Unreached(_reason(why, address))
    problem = distrust(response.certificate, place.authority, host)
    if problem:
        raise Unreached(f"tls: failed to verify certificate: {problem}")
    return response


def _endpoint(store: Store, place: Place, spec: Obj) -> str:
    """Address and port of a ready endpoint; empty without any."""
    wanted = next((row.get("name", "") for row in spec["ports"] if row["port"] == place.port), "")
    for entry in store.list("endpointslices.discovery.k8s.io", place.namespace):
        labels = entry.object["metadata"].get("labels") or {}
        if labels.get("kubernetes.io/service-name") != place.service:
            continue
        ports = [row.get("port") for row in entry.object.get("ports") or () if row.get("name", "") == wanted]
        for row in entry.object.get("endpoints") or ():
            if (row.get("conditions") or {}).get("ready") is not False and ports:
                return f"{row['addresses'][0]}:{ports[0]}"
    return ""


def _reason(why: str, address: str) -> str:
    if why == "refused":
        return f"dial tcp {address}: connect: connection refused"
    if why == "tls":
        return "http: server gave HTTP response to HTTPS client"
    if why == "nxdomain":
        return f"dial tcp: lookup {address.split(':')[0]}: no such host"
    return "context deadline exceeded"
