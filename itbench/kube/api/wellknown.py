"""What others need to check service-account tokens by themselves (OpenID discovery): issuer, public keys. Called by `public`."""

import orjson
from aiohttp import web

from itbench.kube.api.door import Call

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"
_CACHED = {"Cache-Control": "public, max-age=3600"}


def _address(call: Call) -> str:
    """Where the API server is within the cluster: what stands behind the Service `kubernetes`."""
    entry = call.door.store.get("endpoints", "default", "kubernetes")
    for subset in (entry.object.get("subsets") or ()) if entry is not None else ():
        for row in subset.get("addresses") or ():
            return f"{row['ip']}:{subset['ports'][0]['port']}"
    return str(call.request.headers.get("Host", ""))


def configuration(call: Call) -> web.Response:
    """`/.well-known/openid-configuration`."""
    body = {
        "issuer": call.door.tokens.issuer,
        "jwks_uri": f"https://{_address(call)}{KEYS}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
    return web.Response(body=orjson.dumps(body), content_type="application/json", headers=_CACHED)


def keys(call: Call) -> web.Response:
    """`/openid/v1/jwks`."""
    body = orjson.dumps({"keys": [call.door.tokens.key()]})
    return web.Response(body=body, content_type="application/jwk-set+json", headers=_CACHED)
