"""Reads requests as AWS clients send them (service, region, key, action, signature); gives errors in the client's own form.

Pure; called by `itbench.cloud.front`. Source: "AWS Signature Version 4 for API requests", IAM user guide; botocore's protocols.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote
from xml.sax.saxutils import escape

_SCOPE = re.compile(r"Credential=([^/,\s]+)/(\d{8})/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request")
_SIGNED = re.compile(r"SignedHeaders=([^,\s]+)")
_SIGNATURE = re.compile(r"Signature=([0-9a-f]+)")
_RPC = re.compile(r"/service/[^/]+/operation/([A-Za-z0-9]+)$")
_READS = ("Describe", "Get", "List", "Lookup", "Search", "Head", "Estimate")
TIME_HEADER = "x-itbench-unix"
"""Staging only: the Unix second at which something was made."""
_FORWARDED = ("content-type", "content-md5", "accept", "authorization", "smithy-protocol")


@dataclass(frozen=True)
class Wire:
    """One request as it came in. `path` is the raw path, without the query."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    key: str = ""
    region: str = ""
    service: str = ""
    action: str = ""
    params: dict[str, str] = field(default_factory=dict)

    @property
    def reads(self) -> bool:
        """Whether the request changes nothing."""
        return self.action.startswith(_READS) if self.action else self.method in ("GET", "HEAD")

    @property
    def forwarded(self) -> dict[str, str]:
        """The headers that the account may see: none that steer moto."""
        kept = {
            name: value
            for name, value in self.headers.items()
            if name in _FORWARDED or (name.startswith("x-amz-") and name != "x-amz-security-token")
        }
        return kept | {"host": f"{self.service}.{self.region}.amazonaws.com"}


def read(method: str, raw_path: str, headers: Mapping[str, str], body: bytes) -> Wire:
    """Take a request apart; fields that it does not have stay empty."""
    path, _, query = raw_path.partition("?")
    lower = {name.lower(): value for name, value in headers.items()}
    scope = _SCOPE.search(lower.get("authorization", ""))
    key, region, service = (scope[1], scope[3], scope[4]) if scope else ("", "", "")
    kind = lower.get("content-type", "")
    params: dict[str, str] = {}
    if "x-www-form-urlencoded" in kind or (not kind and b"Action=" in body):
        params = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    elif "json" in kind and body[:1] == b"{":
        params = _flat(body)
    action = params.get("Action", "")
    if "x-amz-target" in lower:
        action = lower["x-amz-target"].rpartition(".")[2]
    elif rpc := _RPC.search(path):
        action = rpc[1]
    return Wire(method, path, query, lower, body, key, region, service, action, params)


def _flat(body: bytes) -> dict[str, str]:
    try:
        data = json.loads(body)
    except ValueError:
        return {}
    return {str(key): value if isinstance(value, str) else json.dumps(value) for key, value in data.items()}


def closed(raw_path: str) -> bool:
    """Whether a path leads to moto's own administration, however it is spelled."""
    text = raw_path
    for _ in range(4):
        text = unquote(text)
    return "moto-api" in re.sub(r"[\s/\\]+", "/", text.split("?")[0]).lower()


def signed(wire: Wire, secret: str) -> bool:
    """Whether the request carries the signature that this secret gives."""
    authorization = wire.headers.get("authorization", "")
    scope, names, given = _SCOPE.search(authorization), _SIGNED.search(authorization), _SIGNATURE.search(authorization)
    stamp = wire.headers.get("x-amz-date", "")
    payload = hashlib.sha256(wire.body).hexdigest()
    claimed = wire.headers.get("x-amz-content-sha256", payload)
    if not (scope and names and given and stamp) or (
        claimed != payload and not claimed.startswith(("UNSIGNED", "STREAMING"))
    ):
        return False
    heads = "".join(f"{name}:{' '.join(wire.headers.get(name, '').split())}\n" for name in names[1].split(";"))
    path = wire.path if wire.service == "s3" else quote(wire.path, safe="/~")
    query = "&".join(sorted(part if "=" in part else part + "=" for part in wire.query.split("&") if part))
    canonical = "\n".join([wire.method, path or "/", query, heads, names[1], claimed])
    where = f"{scope[2]}/{scope[3]}/{scope[4]}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, where, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in where.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.compare_digest(hmac.new(key, text.encode(), hashlib.sha256).hexdigest(), given[1])


def error(wire: Wire, code: str, message: str) -> tuple[str, bytes]:
    """Content type and body of an error in the form that the client of this service reads."""
    kind = wire.headers.get("content-type", "")
    if "json" in kind:
        return kind, json.dumps({"__type": code, "message": message}).encode()
    if "cbor" in kind:
        return "application/cbor", b"\xa2" + b"".join(_cbor(text) for text in ("__type", code, "message", message))
    inner = f"<Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
    if wire.service == "ec2":
        body = f"<Response><Errors><Error>{inner}</Error></Errors><RequestID>itbench</RequestID></Response>"
    elif wire.service == "s3":
        body = f"<Error>{inner}</Error>"
    else:
        body = f"<ErrorResponse><Error><Type>Sender</Type>{inner}</Error><RequestId>itbench</RequestId></ErrorResponse>"
    return "text/xml", f'<?xml version="1.0" encoding="UTF-8"?>{body}'.encode()


def _cbor(text: str) -> bytes:
    """A CBOR text string of less than 65,536 bytes."""
    data = text.encode()[:65_535]
    return b"\x79" + len(data).to_bytes(2, "big") + data
