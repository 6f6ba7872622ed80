"""CertificateSigningRequests: who asked is noted, who approves or signs must hold the signer, conditions keep to their rules."""

import base64
import binascii

from cryptography import x509
from cryptography.x509.oid import NameOID

from itbench.kube import status
from itbench.kube.admission.write import Write
from itbench.kube.client import Obj
from itbench.kube.kinds.certificates import read_request
from itbench.kube.kinds.check import Check
from itbench.kube.rbac import MASTERS, Access, User

KEY = "certificatesigningrequests.certificates.k8s.io"
CLIENT = "kubernetes.io/kube-apiserver-client"
_GROUP = "certificates.k8s.io"
_ALWAYS_TRUE = frozenset({"Approved", "Denied", "Failed"})


def request_owner(write: Write) -> None:
    """The spec says who asked, whatever it came with; conditions say when they were set."""
    if write.key != KEY or write.operation == "DELETE":
        return
    if write.operation == "UPDATE":
        rows = (write.object.get("status") or {}).get("conditions") or []
        if rows:
            times = {"lastUpdateTime": write.stamp, "lastTransitionTime": write.stamp}
            known = [{**row, **{key: row.get(key) or value for key, value in times.items()}} for row in rows]
            write.object["status"] = {**write.object["status"], "conditions": known}
        return
    spec = write.object.setdefault("spec", {})
    user = User(write.user, write.groups, write.uid, write.extra).info
    for key in ("username", "uid", "groups", "extra"):
        spec.pop(key, None)
    spec |= user


def certificate_rules(write: Write) -> None:
    """403 without the right to the signer, 422 for conditions that contradict."""
    if write.key != KEY or write.operation == "DELETE":
        return
    if write.operation == "CREATE":
        _check_subject(write)
    elif write.subresource in ("approval", "status"):
        _check_conditions(write)
        if write.subresource == "approval":
            _check_right(write, "approve", "approve requests with")
        elif _certificate(write.object) != _certificate(write.old):
            _check_right(write, "sign", "sign requests with")


def _certificate(obj: Obj | None) -> str:
    return str(((obj or {}).get("status") or {}).get("certificate", ""))


def _check_subject(write: Write) -> None:
    spec = write.object["spec"]
    if spec.get("signerName") != CLIENT:
        return
    names = read_request(spec).subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    if any(name.value == MASTERS for name in names):
        text = f"use of {CLIENT} signer with {MASTERS} group is not allowed"
        raise status.forbidden(write.resource, write.name, text)


def _check_right(write: Write, verb: str, what: str) -> None:
    """Approving and signing take the verb on the signer, or on all signers of its domain."""
    signer = str(write.object["spec"].get("signerName", ""))
    if MASTERS in write.groups or write.services.authorizer is None:
        return
    user = User(write.user, write.groups, write.uid, write.extra)
    names = (signer, signer.split("/")[0] + "/*")
    if not any(
        write.services.authorizer.allowed(user, Access(verb, _GROUP, "signers", name=name))[0] for name in names
    ):
        text = f'user not permitted to {what} signerName "{signer}"'
        raise status.forbidden(write.resource, write.name, text)


def _check_conditions(write: Write) -> None:
    rows = (write.object.get("status") or {}).get("conditions") or []
    old = ((write.old or {}).get("status") or {}).get("conditions") or []
    check = Check()
    for index, row in enumerate(rows):
        if row.get("type") in _ALWAYS_TRUE and row.get("status") != "True":
            check.unsupported(f"status.conditions[{index}].status", row.get("status", ""), ("True",))
    kinds, before = {row.get("type") for row in rows}, {row.get("type") for row in old}
    if {"Approved", "Denied"} <= kinds:
        newest = next(row["type"] for row in reversed(rows) if row["type"] in ("Approved", "Denied"))
        check.invalid("status.conditions", newest, "Approved and Denied conditions are mutually exclusive")
    for kind in ("Approved", "Denied"):
        if write.subresource == "status" and kind in kinds - before:
            check.forbidden("status.conditions", f'updates may not add a condition of type "{kind}"')
        if kind in before - kinds:
            check.forbidden("status.conditions", f'updates may not remove a condition of type "{kind}"')
    _check_certificate(write, check)
    if check:
        raise status.invalid(write.resource.kind, write.resource.group, write.name, check.causes)


def _check_certificate(write: Write, check: Check) -> None:
    new, old = _certificate(write.object), _certificate(write.old)
    if not new or new == old:
        return
    if old:
        check.invalid("status.certificate", "<certificate data>", "field is immutable")
    try:
        raw = base64.b64decode(new)
    except (binascii.Error, ValueError):
        raw = b""
    if b"-----BEGIN CERTIFICATE-----" not in raw:
        text = "must contain at least one CERTIFICATE PEM block"
        check.invalid("status.certificate", "<certificate data>", text)
        return
    try:
        x509.load_pem_x509_certificates(raw)
    except ValueError as error:
        check.invalid("status.certificate", "<certificate data>", str(error))
