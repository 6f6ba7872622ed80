"""Client certificates and certificate requests: signed by the cluster, good for kubectl (texts of Kubernetes 1.34)."""

import base64
import ipaddress
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
CLIENT = "kubernetes.io/kube-apiserver-client"
KEY = ec.generate_private_key(ec.SECP256R1())


def _request(name: str, *groups: str, address: str = "") -> str:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    )
    if address:
        row = x509.IPAddress(ipaddress.ip_address(address))
        builder = builder.add_extension(x509.SubjectAlternativeName([row]), critical=False)
    pem = builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return base64.b64encode(pem).decode()


def _body(name: str, **spec: Any) -> dict[str, Any]:
    base = {"request": _request("eve", "devs"), "signerName": CLIENT, "usages": ["client auth"]}
    return {"metadata": {"name": name}, "spec": base | spec}


async def _decide(site: Any, name: str, kind: str, **headers: str) -> Any:
    """Approve or deny a request."""
    obj = (await site.http("GET", f"{REQUESTS}/{name}")).json
    row = {"type": kind, "status": "True", "reason": "R", "message": "m"}
    obj.setdefault("status", {}).setdefault("conditions", []).append(row)
    return await site.http("PUT", f"{REQUESTS}/{name}/approval", obj, headers=headers)


async def _with_certificate(site: Any, certificate: bytes, folder: Path) -> dict[str, Any]:
    """Who the server takes the holder of a certificate for."""
    private = KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "pair.pem").write_bytes(certificate + private)
    context = ssl.create_default_context(cadata=site.server.certificate.decode())
    context.load_cert_chain(folder / "pair.pem")
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.post(site.server.url + REVIEWS, json={}) as answer,
    ):
        body: dict[str, Any] = await answer.json()
        info: dict[str, Any] = body["status"]["userInfo"]
        return info


async def test_an_approved_request_is_signed_and_its_certificate_authenticates(site: Any, tmp_path: Path) -> None:
    """CN becomes the user, O the groups; the request says who made it, whatever it came with."""
    made = await site.http("POST", REQUESTS, _body("eve", username="bob", expirationSeconds=3600))
    assert (made.status, made.json["spec"]["username"]) == (201, "admin")
    assert (await _decide(site, "eve", "Approved")).status == 200
    signed = base64.b64decode((await site.http("GET", f"{REQUESTS}/eve")).json["status"]["certificate"])
    info = await _with_certificate(site, signed, tmp_path)
    assert (info["username"], info["groups"]) == ("eve", ["devs", "system:authenticated"])
    assert info["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


async def test_kubectl_approves_and_denies(site: Any) -> None:
    """`kubectl certificate approve` and `deny` do what they say."""
    for name in ("good", "bad"):
        await site.http("POST", REQUESTS, _body(name))
    assert (await site.kubectl("certificate", "approve", "good"))[0] == 0
    assert (await site.kubectl("certificate", "deny", "bad"))[0] == 0
    code, out = await site.kubectl("get", "csr", "--no-headers")
    conditions = {line.split()[0]: line.split()[-1] for line in out.splitlines()}
    assert (code, conditions) == (0, {"good": "Approved,Issued", "bad": "Denied"})


async def test_kubectl_works_with_a_client_certificate(site: Any) -> None:
    """A kubeconfig that holds a certificate instead of a token."""
    (site.folder / "eve.kubeconfig").write_text(site.server.certified_kubeconfig("eve", ("devs",)))
    code, out = await site.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}", user="eve")
    assert (code, out) == (0, "eve")
    code, out = await site.kubectl("get", "pods", user="eve")
    assert code == 1 and 'User "eve" cannot list resource "pods"' in out


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"usages": ["server auth"]}, "invalid usage for client certificate: server auth"),
        (
            {"signerName": "kubernetes.io/kubelet-serving", "request": _request("system:node:n", "devs")},
            "subject organization is not system:nodes",
        ),
        (
            {
                "signerName": "kubernetes.io/kubelet-serving",
                "request": _request("system:node:n", "system:nodes"),
                "usages": ["digital signature", "server auth"],
            },
            "DNS or IP subjectAltName is required",
        ),
    ],
)
async def test_signers_refuse_what_they_do_not_sign(site: Any, spec: dict[str, Any], message: str) -> None:
    """The condition Failed says why."""
    await site.http("POST", REQUESTS, _body("r", **spec))
    await _decide(site, "r", "Approved")
    status = (await site.http("GET", f"{REQUESTS}/r")).json["status"]
    assert "certificate" not in status
    failed = next(row for row in status["conditions"] if row["type"] == "Failed")
    assert (failed["reason"], failed["message"]) == ("SignerValidationFailure", message)


async def test_kubelets_get_serving_certificates(site: Any) -> None:
    """With the address in the subject's alternative names."""
    request = _request("system:node:n", "system:nodes", address="10.0.0.1")
    usages = ["digital signature", "server auth"]
    body = _body("k", signerName="kubernetes.io/kubelet-serving", request=request, usages=usages)
    await site.http("POST", REQUESTS, body)
    await _decide(site, "k", "Approved")
    pem = base64.b64decode((await site.http("GET", f"{REQUESTS}/k")).json["status"]["certificate"])
    names = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.value.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("10.0.0.1")]


async def test_approving_takes_the_right_to_the_signer(site: Any) -> None:
    """The verb `update` on the approval is not enough."""
    rules = [{"apiGroups": ["certificates.k8s.io"], "resources": ["*"], "verbs": ["update", "create", "get"]}]
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    await site.http("POST", role, {"metadata": {"name": "t"}, "rules": rules})
    binding = {
        "metadata": {"name": "t"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "t"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "mallory"}],
    }
    await site.http("POST", f"{role}bindings".replace("roles", "role"), binding)
    await site.http("POST", REQUESTS, _body("r"))
    refused = await _decide(site, "r", "Approved", **{"Impersonate-User": "mallory"})
    assert refused.status == 403
    assert f'user not permitted to approve requests with signerName "{CLIENT}"' in refused.json["message"]


@pytest.mark.parametrize(
    ("spec", "code", "text"),
    [
        (
            {"request": "aGVsbG8="},
            422,
            'spec.request: Invalid value: "aGVsbG8=": PEM block type must be CERTIFICATE REQUEST',
        ),
        ({"usages": []}, 422, "spec.usages: Required value"),
        ({"expirationSeconds": 5}, 422, "may not specify a duration less than 600 seconds (10 minutes)"),
        (
            {"signerName": "foo"},
            422,
            "must be a fully qualified domain and path of the form 'example.com/signer-name'",
        ),
        (
            {"request": _request("eve", "system:masters")},
            403,
            f"use of {CLIENT} signer with system:masters group is not allowed",
        ),
    ],
)
async def test_bad_requests_are_refused(site: Any, spec: dict[str, Any], code: int, text: str) -> None:
    """Recorded texts."""
    answer = await site.http("POST", REQUESTS, _body("r", **spec))
    assert answer.status == code
    assert text in answer.json["message"]


async def test_a_decision_stands(site: Any) -> None:
    """Approved and Denied exclude each other, and only `approval` may add them."""
    await site.http("POST", REQUESTS, _body("r"))
    sneaked = await site.http(
        "PATCH",
        f"{REQUESTS}/r/status",
        {"status": {"conditions": [{"type": "Approved", "status": "True"}]}},
        headers={"Content-Type": "application/merge-patch+json"},
    )
    assert 'updates may not add a condition of type "Approved"' in sneaked.json["message"]
    await _decide(site, "r", "Denied")
    both = await _decide(site, "r", "Approved")
    assert (both.status, "mutually exclusive" in both.json["message"]) == (422, True)


async def test_status_and_approval_bring_their_metadata(site: Any) -> None:
    """Annotations sent with them are kept; the spec never changes."""
    await site.http("POST", REQUESTS, _body("r"))
    merge = {"Content-Type": "application/merge-patch+json"}
    for part in ("approval", "status"):
        patch = {"metadata": {"annotations": {part: "yes"}}, "spec": {"usages": ["server auth"]}}
        assert (await site.http("PATCH", f"{REQUESTS}/r/{part}", patch, headers=merge)).status == 200
    obj = (await site.http("GET", f"{REQUESTS}/r")).json
    assert obj["metadata"]["annotations"] == {"approval": "yes", "status": "yes"}
    assert obj["spec"]["usages"] == ["client auth"]
