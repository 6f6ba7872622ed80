"""Certificates, keys and kubeconfigs of an API server; called by `itbench.kube.api` and by telemetry doors that want TLS.

Server certificates live in wall time (clients check them against their own clock): ten years, self-signed, EC P-256.
kubectl drops credentials on plain http, so TLS is the rule.
"""

import base64
import hashlib
import ipaddress
import json
import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
_BACKDATED = timedelta(minutes=5)
_PURPOSES = {"client auth": ExtendedKeyUsageOID.CLIENT_AUTH, "server auth": ExtendedKeyUsageOID.SERVER_AUTH}


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key with its self-signed certificate, both PEM."""

    certificate: bytes
    key: bytes

    def context(self, *, clients: bool = False) -> ssl.SSLContext:
        """A server-side TLS context (HTTP/1.1 only).

        Args:
            clients: ask clients for a certificate of this authority; they need not have one.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "server.pem"
            path.touch(mode=0o600)
            path.write_bytes(self.certificate + self.key)
            context.load_cert_chain(path)
        context.set_alpn_protocols(["http/1.1"])
        if clients:
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(cadata=self.certificate.decode())
        return context

    def sign(self, request: x509.CertificateSigningRequest, usages: list[str], lifetime_s: int) -> bytes:
        """The PEM of a certificate for a request, valid in wall time from five minutes ago."""
        authority = x509.load_pem_x509_certificate(self.certificate)
        key = serialization.load_pem_private_key(self.key, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        start = datetime.now(UTC) - _BACKDATED
        builder = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(authority.subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(datetime.now(UTC) + timedelta(seconds=lifetime_s))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        )
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
        )
        for extension in request.extensions:
            if isinstance(extension.value, x509.SubjectAlternativeName):
                builder = builder.add_extension(extension.value, critical=False)
        purposes = [_PURPOSES[usage] for usage in usages if usage in _PURPOSES]
        if purposes:
            builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def self_signed(host: str = "127.0.0.1", *, now: datetime | None = None) -> Identity:
    """A certificate that is its own authority, valid for ten years of wall time from a day ago.

    Args:
        host: IP address that clients connect to, besides 127.0.0.1.
        now: wall time, for tests.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    start = (now or datetime.now(UTC)) - timedelta(days=1)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    addresses = [x509.IPAddress(ipaddress.ip_address(a)) for a in dict.fromkeys(("127.0.0.1", host))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=3653))
        .add_extension(x509.SubjectAlternativeName([*map(x509.DNSName, NAMES), *addresses]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Identity(certificate.public_bytes(pem), private)


def client_pair(
    authority: Identity, user: str, groups: tuple[str, ...] = (), lifetime_s: int = 365 * 86400
) -> Identity:
    """A client certificate of an authority (CN is the user, each O a group) with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    pem = authority.sign(request, ["client auth"], lifetime_s)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Identity(pem, private)


def kubeconfig(
    url: str,
    *,
    authority: bytes,
    user: str,
    token: str = "",
    client: Identity | None = None,
    cluster: str = "main",
    namespace: str = "",
) -> str:
    """A kubeconfig (YAML) for one user of one cluster, with a token or a client certificate."""
    server: dict[str, Any] = {"server": url}
    if authority:
        server["certificate-authority-data"] = base64.b64encode(authority).decode()
    credentials = {"token": token} if client is None else _certified(client)
    context = {"cluster": cluster, "user": user} | ({"namespace": namespace} if namespace else {})
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": server}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": cluster, "context": context}],
        "current-context": cluster,
    }
    return yaml.safe_dump(config, sort_keys=False)


def _certified(client: Identity) -> dict[str, str]:
    return {
        "client-certificate-data": base64.b64encode(client.certificate).decode(),
        "client-key-data": base64.b64encode(client.key).decode(),
    }


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Signer:
    """Signs and checks service-account tokens: JWTs (ES256) as a real cluster issues them."""

    def __init__(self, key: bytes) -> None:
        private = serialization.load_pem_private_key(key, None)
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise ValueError(f"not an elliptic curve key: {type(private).__name__}; expected P-256")
        self._key = private
        public = private.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self._id = _b64(hashlib.sha256(public).digest())

    def public(self) -> dict[str, str]:
        """The public key as a JSON Web Key, by which others check signatures."""
        numbers = self._key.public_key().public_numbers()
        x, y = (_b64(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
        return {"use": "sig", "kty": "EC", "kid": self._id, "crv": "P-256", "alg": "ES256", "x": x, "y": y}

    def sign(self, claims: dict[str, Any]) -> str:
        """Claims -> compact JWT."""
        head = _b64(json.dumps({"alg": "ES256", "kid": self._id, "typ": "JWT"}, separators=(",", ":")).encode())
        payload = f"{head}.{_b64(json.dumps(claims, separators=(',', ':')).encode())}"
        r, s = decode_dss_signature(self._key.sign(payload.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{payload}.{_b64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    def claims(self, token: str) -> dict[str, Any] | None:
        """The claims of a token with a good signature, else None. Expiry is the caller's to judge."""
        payload, _, signature = token.rpartition(".")
        try:
            raw = _unb64(signature)
            der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
            self._key.public_key().verify(der, payload.encode(), ec.ECDSA(hashes.SHA256()))
            claims: dict[str, Any] = json.loads(_unb64(payload.split(".")[1]))
        except Exception:  # any malformed token is just no token
            return None
        return claims


def unverified_claims(token: str) -> dict[str, Any] | None:
    """What a JWT says, whoever wrote it; None when it is none."""
    parts = token.split(".")
    try:
        claims = json.loads(_unb64(parts[1])) if len(parts) == 3 else None
    except ValueError:
        return None
    return claims if isinstance(claims, dict) else None


def verified_claims(token: str, key: dict[str, str]) -> dict[str, Any] | None:
    """The claims of a JWT (ES256) whose signature is of a JSON Web Key, else None. Expiry is the caller's to judge."""
    payload, _, signature = token.rpartition(".")
    try:
        raw = _unb64(signature)
        x, y = (int.from_bytes(_unb64(key[name]), "big") for name in ("x", "y"))
        public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
        der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
        public.verify(der, payload.encode(), ec.ECDSA(hashes.SHA256()))
    except (ValueError, KeyError, InvalidSignature):
        return None
    return unverified_claims(token)
