"""Programs of Kubernetes' test image that use their pod's account: they ask the API server from inside; run through `agnhost`."""

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from itbench.core.clock import rfc3339
from itbench.kube.door import Request, Response
from itbench.kube.tls import unverified_claims, verified_claims
from itbench.world.agnhost_mounts import options
from itbench.world.shell.interpreter import Command, Steps

MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_OUTSIDE = (
    "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
)
_WORDS = {"refused": "connect: connection refused", "nxdomain": "no such host"}


class Failed(Exception):
    """The program ends with this text."""


def in_cluster(call: Command) -> tuple[str, int, str]:
    """(host, port, token) of the API server as every client library finds them; raises Failed."""
    host, port = (call.machine.env.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
    if not host or not port:
        raise Failed(_OUTSIDE)
    token = call.machine.read(f"{MOUNT}/token")
    if token is None:
        raise Failed(f"open {MOUNT}/token: no such file or directory")
    return host, int(port), token


def _get(call: Command, url: str, token: str) -> Response:
    """A GET; raises Failed."""
    parts = urlsplit(url)
    headers = {"Authorization": f"Bearer {token}", "User-Agent": "agnhost"}
    response, why = call.machine.http(parts.hostname or "", parts.port or 443, Request("GET", parts.path, headers))
    if response is None:
        raise Failed(f'Get "{url}": dial tcp: {_WORDS.get(why, "i/o timeout")}')
    return response


def _json(call: Command, url: str, token: str) -> dict[str, Any]:
    response = _get(call, url, token)
    if response.status != 200:
        raise Failed(f"{response.status}: {response.body.decode(errors='replace')}")
    found: dict[str, Any] = json.loads(response.body)
    return found


def discover(call: Command) -> Steps:
    """test-service-account-issuer-discovery: checks a token by nothing but what its issuer publishes."""
    given = options(call.argv[2:])
    try:
        _check(call, given.get("token-path") or f"{MOUNT}/token", given.get("audience", ""))
    except Failed as error:
        _log(call, str(error))
        yield 0.0
        return 1
    yield 0.0
    return 0


def _check(call: Command, path: str, audience: str) -> None:
    """Raises Failed at the first thing that is wrong."""
    own = in_cluster(call)[2]
    token = call.machine.read(path)
    if token is None:
        raise Failed(f"open {path}: no such file or directory")
    _log(call, "OK: Got token")
    claims = unverified_claims(token)
    if claims is None:
        raise Failed("go-jose/go-jose: compact JWS format must have three parts")
    issuer = claims.get("iss", "")
    _log(call, f"OK: got issuer {issuer}")
    _log(call, f"Full, not-validated claims: \n{_shown(claims)}")
    found = _json(call, f"{issuer}/.well-known/openid-configuration", own)
    if found.get("issuer") != issuer:
        told = f'expected "{issuer}" got "{found.get("issuer")}"'
        raise Failed(f"oidc: issuer did not match the issuer returned by provider, {told}")
    _log(call, f"OK: Constructed OIDC provider for issuer {issuer}")
    if audience not in claims.get("aud", ()):
        told = f'expected audience "{audience}" got {json.dumps(claims.get("aud", []))}'
        raise Failed(f"oidc: {told}")
    keys = _json(call, found["jwks_uri"], own)["keys"]
    checked = next((good for key in keys if (good := verified_claims(token, key)) is not None), None)
    if checked is None:
        raise Failed("failed to verify signature: failed to verify id token signature")
    _log(call, "OK: Validated signature on JWT")
    _log(call, "OK: Got valid claims from token!")
    _log(call, f"Full, validated claims: \n{_shown(checked)}")


def _shown(claims: dict[str, Any]) -> str:
    return json.dumps(claims, sort_keys=True)


def _log(call: Command, text: str) -> None:
    call.io.err(f"{rfc3339(call.machine.calendar())[:19].replace('-', '/').replace('T', ' ')} {text}\n")


def poll(call: Command) -> Steps:
    """inclusterclient --poll-interval=S: asks for `/healthz` with what the token file holds, again and again."""
    pause = float(options(call.argv[2:]).get("poll-interval") or 30)
    call.shell.looping += 1  # it starts over after each pause
    try:
        host, port, token = in_cluster(call)
    except Failed as error:
        call.io.err(f"err: {error}\n")
        yield 0.0
        return 1
    moment = rfc3339(call.machine.calendar())
    head = f"{moment[5:7]}{moment[8:10]} {moment[11:19]}.000000       1 main.go"
    digest = hashlib.sha256(f"{call.machine.hostname}|Bearer {token}".encode()).digest()
    call.io.err(f"I{head}:61] calling /healthz\n")
    call.io.err(f"I{head}:82] authz_header={base64.urlsafe_b64encode(digest).decode().rstrip('=')}\n")
    try:
        status = _get(call, f"https://{host}:{port}/healthz", token).status
        failure = "" if status == 200 else f"{status}"
    except Failed as error:
        failure = str(error)
    if failure:
        call.io.err(f"E{head}:65] status=failed\nE{head}:66] error checking /healthz: {failure}\n")
    yield pause
    return 0


COMMANDS: dict[str, Callable[[Command], Steps]] = {
    "test-service-account-issuer-discovery": discover,
    "inclusterclient": poll,
}
