"""Signs approved CertificateSigningRequests of the signers that a cluster serves itself, with the authority of its API server."""

import base64
from collections.abc import Callable

from cryptography import x509
from cryptography.x509.oid import ExtensionOID, NameOID

from itbench.kube.client import Obj
from itbench.kube.controllers.base import Context, Controller, own_key, put_status
from itbench.kube.kinds.certificates import read_request

REQUESTS = "certificatesigningrequests.certificates.k8s.io"
Sign = Callable[[x509.CertificateSigningRequest, list[str], int], bytes]
"""(request, usages, seconds that it is to live) -> PEM of the certificate."""
_YEAR_S = 365 * 24 * 3600
_CLIENT = frozenset({"digital signature", "key encipherment", "client auth"})
_SERVING = frozenset({"digital signature", "key encipherment", "server auth"})
_NODES = "system:nodes"
_NOT_OF_NODES = "subject organization is not system:nodes"


def _names(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    try:
        found = request.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME).value
    except x509.ExtensionNotFound:
        return []
    return list(found) if isinstance(found, x509.SubjectAlternativeName) else []


def _values(request: x509.CertificateSigningRequest, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(row.value) for row in request.subject.get_attributes_for_oid(oid)]


def _is_of_nodes(request: x509.CertificateSigningRequest) -> bool:
    return _values(request, NameOID.ORGANIZATION_NAME) == [_NODES]


def _name_fault(request: x509.CertificateSigningRequest) -> str:
    named = all(name.startswith("system:node:") for name in _values(request, NameOID.COMMON_NAME))
    return "" if named else "subject common name does not begin with system:node: "


def _check_client(request: x509.CertificateSigningRequest, usages: list[str]) -> str:
    for usage in usages:
        if usage not in _CLIENT:
            return f"invalid usage for client certificate: {usage}"
    return "" if "client auth" in usages else "missing usage for client certificate: client auth"


def _check_node_client(request: x509.CertificateSigningRequest, usages: list[str]) -> str:
    if not _is_of_nodes(request):
        return _NOT_OF_NODES
    if _names(request):
        return "DNS subjectAltNames are not allowed"
    if not set(usages) <= _CLIENT or "client auth" not in usages:
        return _mismatch(usages, _CLIENT)
    return _name_fault(request)


def _check_serving(request: x509.CertificateSigningRequest, usages: list[str]) -> str:
    if not _is_of_nodes(request):
        return _NOT_OF_NODES
    names = _names(request)
    if not any(isinstance(name, x509.DNSName | x509.IPAddress) for name in names):
        return "DNS or IP subjectAltName is required"
    if any(isinstance(name, x509.RFC822Name) for name in names):
        return "Email subjectAltNames are not allowed"
    if any(isinstance(name, x509.UniformResourceIdentifier) for name in names):
        return "URI subjectAltNames are not allowed"
    if not set(usages) <= _SERVING or "server auth" not in usages:
        return _mismatch(usages, _SERVING)
    return _name_fault(request)


def _mismatch(usages: list[str], wanted: frozenset[str]) -> str:
    return f"usages did not match: expected [{' '.join(sorted(wanted))}], got [{' '.join(sorted(usages))}]"


_SIGNERS: dict[str, Callable[[x509.CertificateSigningRequest, list[str]], str]] = {
    "kubernetes.io/kube-apiserver-client": _check_client,
    "kubernetes.io/kube-apiserver-client-kubelet": _check_node_client,
    "kubernetes.io/kubelet-serving": _check_serving,
}


def controller(sign: Callable[[], Sign | None]) -> Controller:
    """The controller.

    Args:
        sign: the authority; None while nobody serves the cluster.
    """

    def reconcile(context: Context, _: str, name: str) -> None:
        obj = context.cache.get(REQUESTS, "", name)
        signer = sign()
        if obj is None or signer is None:
            return
        status = obj.get("status") or {}
        kinds = {row["type"] for row in status.get("conditions") or ()}
        check = _SIGNERS.get(obj["spec"].get("signerName", ""))
        if check is None or "Approved" not in kinds or "Failed" in kinds or status.get("certificate"):
            return
        put_status(context, REQUESTS, obj, _signed(context, obj, check, signer))

    return Controller("csrsigning", {REQUESTS: own_key}, reconcile)


def _signed(
    context: Context, obj: Obj, check: Callable[[x509.CertificateSigningRequest, list[str]], str], sign: Sign
) -> Obj:
    """The status with the certificate, or with why there is none."""
    spec, status = obj["spec"], obj.get("status") or {}
    request = read_request(spec)
    fault = check(request, spec["usages"])
    if not fault:
        pem = sign(request, spec["usages"], spec.get("expirationSeconds") or _YEAR_S)
        return {**status, "certificate": base64.b64encode(pem).decode()}
    now = context.stamp()
    condition = {"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": fault}
    rows = status.get("conditions") or []
    return {**status, "conditions": [*rows, {**condition, "lastUpdateTime": now, "lastTransitionTime": now}]}
