"""CertificateSigningRequests: rules. Who may approve and sign is `admission/certificaterequests`, signing is a controller."""

import base64
import binascii

from cryptography import x509

from itbench.kube.client import Obj
from itbench.kube.kinds.base import Behaviour
from itbench.kube.kinds.check import Check
from itbench.kube.names import label_errors, subdomain_errors

USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_SHORTEST_S = 600


def read_request(spec: Obj) -> x509.CertificateSigningRequest:
    """The PKCS #10 request in a spec; raises ValueError with the words of the real server."""
    try:
        raw = base64.b64decode(spec.get("request") or "")
    except (binascii.Error, ValueError):
        raw = b""
    if b"-----BEGIN CERTIFICATE REQUEST-----" not in raw:
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    return x509.load_pem_x509_csr(raw)


def _check_signer(name: str, check: Check) -> None:
    field = "spec.signerName"
    if not name:
        check.required(field)
        return
    domain, slash, path = name.partition("/")
    if not slash or not path:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        check.invalid(field, name, text)
        return
    for label in domain.split("."):
        check.all_invalid(field, domain, (f'validating label "{label}": {line}' for line in label_errors(label)))
    if "." not in domain:
        check.invalid(field, domain, "should be a domain with at least two segments separated by dots")
    check.all_invalid(field, path, (f'validating path: "{path}": {line}' for line in subdomain_errors(path)))
    if name == "kubernetes.io/legacy-unknown":
        check.invalid(field, name, "the legacy signerName is not allowed via this API version")


def _check_request(obj: Obj, check: Check) -> None:
    spec = obj.get("spec") or {}
    try:
        read_request(spec)
    except ValueError as error:
        check.invalid("spec.request", spec.get("request"), str(error))
    usages = spec.get("usages") or []
    if not usages:
        check.required("spec.usages")
    for index, usage in enumerate(usages):
        if usage not in USAGES:
            check.unsupported(f"spec.usages[{index}]", usage, USAGES)
        if usage in usages[:index]:
            check.duplicate(f"spec.usages[{index}]", usage)
    _check_signer(spec.get("signerName", ""), check)
    lifetime = spec.get("expirationSeconds")
    if lifetime is not None and lifetime < _SHORTEST_S:
        text = "may not specify a duration less than 600 seconds (10 minutes)"
        check.invalid("spec.expirationSeconds", lifetime, text)


SIGNING_REQUEST = Behaviour(validate=_check_request)
