"""Conversion webhooks: asks the program that converts the versions of a definition, and judges its answer; used by the registry.

Not by `model`, which is given `convert` as a function: a definition does not know how Services are reached.
"""

import re
import uuid
from typing import Any

import orjson

from itbench.core.ids import digest
from itbench.kube.admission.reach import Place, place_of, reach
from itbench.kube.admission.review import CallFailed, disturbance
from itbench.kube.admission.services import Services, Unreached
from itbench.kube.client import ApiError, Obj
from itbench.kube.custom.conversion import Ask
from itbench.kube.status import failure
from itbench.kube.store import Store

VERSION = "apiextensions.k8s.io/v1"
TIMEOUT_S = 30


def converter(store: Store, services: Services) -> Ask:
    """The function that asks webhooks."""

    def convert(definition: Obj, obj: Obj, version: str) -> Obj:
        spec = definition["spec"]
        wanted = f"{spec['group']}/{version}"
        named = f"{obj['apiVersion']}, Kind={obj['kind']}"
        try:
            place = place_of(spec["conversion"]["webhook"].get("clientConfig") or {}, TIMEOUT_S)
            uid = _uid(obj, wanted)
            found = _ask(place, _request(obj, wanted, uid), store, services)
        except CallFailed as error:
            raise _failed(f"{named} failed: {error}") from None
        return _checked(found, uid, obj, wanted, named)

    return convert


def _failed(text: str) -> ApiError:
    return failure(500, "", f"conversion webhook for {text}")


def _uid(obj: Obj, wanted: str) -> str:
    """Of a review: drawn from what is converted, as reading must not change what others draw."""
    meta = obj["metadata"]
    drawn = digest("conversion", meta.get("uid", ""), meta.get("resourceVersion", ""), wanted)
    return str(uuid.UUID(bytes=drawn[:16], version=4))


def _request(obj: Obj, wanted: str, uid: str) -> bytes:
    review: Obj = {"kind": "ConversionReview", "apiVersion": VERSION}
    review["request"] = {"uid": uid, "desiredAPIVersion": wanted, "objects": [obj]}
    return orjson.dumps(review)


def _ask(place: Place, body: bytes, store: Store, services: Services) -> Obj:
    """The response in the answer; raises CallFailed."""
    try:
        response = reach(place, body, TIMEOUT_S, store, services)
    except Unreached as error:
        raise CallFailed(f'Post "{place.url}": {_reason(place, error, services)}') from None
    if not 200 <= response.status < 300:
        raise CallFailed(disturbance(response))
    try:
        review = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        raise CallFailed("couldn't get version/kind; json parse error: invalid character") from None
    version, kind = (review.get("apiVersion", ""), review.get("kind", "")) if isinstance(review, dict) else ("", "")
    if (version, kind) != (VERSION, "ConversionReview"):
        shown = version if "/" in version else f"/{version}"
        raise CallFailed(f"expected webhook response of {VERSION}, Kind=ConversionReview, got {shown}, Kind={kind}")
    if not review.get("response"):
        raise CallFailed("no response provided")
    found: Obj = review["response"]
    return found


def _reason(place: Place, error: Unreached, services: Services) -> str:
    """Names outside are not known here, unless they were allowed at start."""
    if place.service or (services.outside is not None and services.outside.allows(place.url)):
        return str(error)
    host = re.sub(r"^https://([^/:]+).*", r"\1", place.url)
    return f"dial tcp: lookup {host}: no such host"


def _checked(found: Obj, uid: str, obj: Obj, wanted: str, named: str) -> Obj:
    """The converted object, with the metadata that a webhook may not change; raises ApiError 500."""
    if found.get("uid", "") != uid:
        raise _failed(f'{named} failed: expected response.uid="{uid}", got "{found.get("uid", "")}"')
    result = found.get("result") or {}
    if result.get("status") != "Success":
        text = f"response.result.status was '{result.get('status', '')}', not 'Success'"
        raise _failed(f"{named} failed: {result.get('message') or text}")
    rows: list[Any] = found.get("convertedObjects") or []
    if len(rows) != 1:
        raise _failed(f"{named} returned {len(rows)} objects, expected 1")
    row = rows[0]
    if row.get("apiVersion", "") != wanted:
        text = f"invalid groupVersion (expected {wanted}, received {row.get('apiVersion', '')})"
        raise _failed(f"{named} returned invalid converted object at index 0: {text}")
    _check_same(row, obj, named)
    meta = {**obj["metadata"]}
    for key in ("labels", "annotations"):
        meta.pop(key, None)
        if row["metadata"].get(key) is not None:
            meta[key] = row["metadata"][key]
    return {**row, "metadata": meta}


def _check_same(row: Obj, obj: Obj, named: str) -> None:
    """Raises ApiError 500 when the converted object is another one."""
    meta, before = row.get("metadata"), obj["metadata"]
    where = f"{named} returned invalid converted object at index 0: "
    if row.get("kind") != obj["kind"]:
        raise _failed(f"{where}must have the same kind: {row.get('kind', '')} != {obj['kind']}")
    if not isinstance(meta, dict):
        raise _failed(f"{named} returned invalid metadata at index 0: invalid metadata of type {type(meta).__name__}")
    for key in ("name", "namespace", "uid"):
        if meta.get(key, "") != before.get(key, ""):
            words = "UID" if key == "uid" else key
            raise _failed(f"{where}must have the same {words}: {meta.get(key, '')} != {before.get(key, '')}")
