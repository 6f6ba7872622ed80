"""The conversion webhook of Kubernetes' test image (`agnhost crd-conversion-webhook`); asked by `agnhost`.

What `hostPort` is in v1, `host` and `port` are in v2.
"""

import json
from typing import Any

from itbench.kube.door import Response

Obj = dict[str, Any]
GROUP = "stable.example.com"
_TEXT = {"Content-Type": "text/plain; charset=utf-8"}


class Refused(Exception):
    """What it does not convert; the text goes into the result."""


def convert(obj: Obj, wanted: str) -> Obj:
    """One object in another version.

    Raises:
        Refused: not between v1 and v2 of its group.
    """
    have, found = str(obj.get("apiVersion", "")), dict(obj)
    if have == wanted:
        raise Refused(f"conversion from a version to itself should not call the webhook: {wanted}")
    for version in (have, wanted):
        if version not in (f"{GROUP}/v1", f"{GROUP}/v2"):
            raise Refused(f'unexpected conversion version "{version}"')
    if wanted.endswith("v2"):
        if "hostPort" in found:
            found["host"], _, found["port"] = str(found.pop("hostPort")).partition(":")
    elif "host" in found or "port" in found:
        found["hostPort"] = f"{found.pop('host', '')}:{found.pop('port', '')}"
    return {**found, "apiVersion": wanted}


def answer(path: str, body: bytes, certificate: bytes) -> Response:
    """What the server says to one review."""
    if path == "/readyz":
        return Response(200, _TEXT, b"ok", certificate)
    if path != "/crdconvert":
        return Response(404, _TEXT, b"404 page not found\n", certificate)
    review = json.loads(body)
    request = review["request"]
    response: Obj = {"uid": request["uid"], "convertedObjects": [], "result": {"status": "Success"}}
    try:
        response["convertedObjects"] = [convert(obj, request["desiredAPIVersion"]) for obj in request["objects"]]
    except Refused as error:
        response["result"] = {"status": "Failed", "message": str(error)}
    shown = {"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response}
    return Response(200, {"Content-Type": "application/json"}, json.dumps(shown).encode(), certificate)
