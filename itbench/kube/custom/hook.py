"""Conversion webhooks: asks the program that converts the versions of a definition, and judges its answer; used by the registry.

Not by `model`, which is given `convert` as a function: a definition does not know how Services are reached.
"""

import re
import uuid
from typing import Any

import orjson

from itbench.core.ids import digest
from itbench.kube.admission.reach import Place, place_of, reach
from itbench.kube.admission.review import CallFailed, envelope
from itbench.kube.admission.services import Services, Unreached
from itbench.kube.client import ApiError, Obj
from itbench.kube.custom.conversion import Ask
from itbench.kube.kinds.check import Check
from itbench.kube.kinds.metadata import check_labels
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
    review = envelope(response, VERSION, "ConversionReview")
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
    for what, have, want in (
        ("groupVersion", row.get("apiVersion", ""), wanted),
        ("kind", row.get("kind"), obj["kind"]),
    ):
        if have != want:
            text = f"invalid {what} (expected {want}, received {have})"
            raise _failed(f"{named} returned invalid object at index 0: {text}")
    return {**row, "metadata": _metadata(row.get("metadata"), obj["metadata"], named)}


def _metadata(meta: Any, before: Obj, named: str) -> Obj:
    """That of the object, with the labels and annotations of the answer; raises ApiError 500 when it is another object's."""
    meta = meta if isinstance(meta, dict) else {}
    for key, words in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        if meta.get(key, "") != before.get(key, ""):
            text = f"must have the same {words}: {before.get(key, '')} != {meta.get(key, '')}"
            raise _failed(f"{named} returned invalid object: {text}")
    check = Check()
    check_labels(meta.get("labels") or {}, "metadata.labels", check)
    if check:
        raise _failed(f"{named} returned invalid metadata: {check.causes[0].line()}")
    kept = {key: value for key, value in before.items() if key not in ("labels", "annotations")}
    return kept | {key: meta[key] for key in ("labels", "annotations") if meta.get(key) is not None}
