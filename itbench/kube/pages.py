"""Lists in chunks: continue tokens, and how long the state that they go on with is kept. Called by the registry.

A token names the revision of the first chunk, so that all chunks show one state, whatever is written meanwhile. Like a real
server, whose store is compacted every five minutes, it forgets old states: the error then carries a token for the present one.
"""

import base64

import orjson

from itbench.kube import status
from itbench.kube.client import ApiError
from itbench.kube.kinds.check import Check
from itbench.kube.kinds.gojson import go_json_error
from itbench.kube.requests import Entries, ListQuery
from itbench.kube.resources import Resource
from itbench.kube.store import Entry, Expired, Store

KEPT_S = 300.0
"""World seconds for which the state of a first chunk can be gone on with."""
_PRESENT = -1
_VERSION = "meta.k8s.io/v1"
_MATCH = "resourceVersionMatch"
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


def begin(store: Store, resource: Resource, namespace: str, query: ListQuery, now: float) -> tuple[Entries, int]:
    """What a list still has to show, sorted, and of which revision that is.

    Args:
        now: world seconds.

    Raises:
        ApiError: 400 or 422, token or version are wrong; 410, their state is forgotten; 504, it has not come yet.
    """
    version = _check(query)
    if not query.token:
        return _at(store, resource, namespace, version, exact=_is_exact(query))
    revision, since, after = _read_token(query.token)
    if revision == _PRESENT:
        entries, revision = store.list(resource.storage, namespace), store.revision
    else:
        try:
            if now - since > KEPT_S and revision < store.revision:
                raise Expired(revision, store.revision)
            entries = store.list_at(resource.storage, namespace, revision)
        except Expired:
            raise _expired(since, after) from None
    if query.version not in ("", "0"):
        raise status.bad_request("specifying resource version is not allowed when using continue")
    return [entry for entry in entries if (entry.namespace, entry.name) > after], revision


def _check(query: ListQuery) -> int:
    """The resourceVersion asked for, 0 for any."""
    if query.version and not query.version.isdigit():
        shown = f'"{query.version}"'
        text = f"invalid resource version: resourceVersion: Invalid value: {shown}: strconv.ParseUint: parsing {shown}"
        raise status.bad_request(f"{text}: invalid syntax")
    version, check = int(query.version or "0"), Check()
    if query.match:
        _check_match(query, version, check)
    if query.initial:
        check.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if check:
        raise status.invalid("ListOptions", "meta.k8s.io", "", check.causes)
    return version


def _check_match(query: ListQuery, version: int, check: Check) -> None:
    if not query.version:
        check.forbidden(_MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided")
    if query.token:
        check.forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided")
    if query.match not in ("Exact", "NotOlderThan"):
        check.unsupported(_MATCH, query.match, ("Exact", "NotOlderThan", ""))
    elif query.match == "Exact" and query.version and version == 0:
        check.forbidden(_MATCH, f'{_MATCH} "exact" is forbidden for resourceVersion "0"')


def _is_exact(query: ListQuery) -> bool:
    return query.match == "Exact" or bool(not query.match and query.limit)


def _at(store: Store, resource: Resource, namespace: str, version: int, *, exact: bool) -> tuple[Entries, int]:
    if version > store.revision:
        text = f"Too large resource version: {version}, current: {store.revision}"
        cause = status.Cause("ResourceVersionTooLarge", "", "Too large resource version")
        raise status.failure(504, "Timeout", f"Timeout: {text}", None, [cause], 1)
    if not version or not exact:
        return store.list(resource.storage, namespace), store.revision
    try:
        return store.list_at(resource.storage, namespace, version), version
    except Expired:
        raise status.expired("The resourceVersion for the provided list is too old.") from None


def write_token(revision: int, last: Entry, now: float) -> str:
    """A token that goes on after an entry."""
    return _encode(revision, now, (last.namespace, last.name))


def _encode(revision: int, now: float, after: tuple[str, str]) -> str:
    data = {"v": _VERSION, "rv": revision, "start": list(after), "since": now}
    return base64.urlsafe_b64encode(orjson.dumps(data)).decode()


def _read_token(token: str) -> tuple[int, float, tuple[str, str]]:
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError as error:
        raise _bad_token(_misplaced(token) or str(error)) from None
    if why := go_json_error(raw.decode(errors="surrogateescape") if not raw.isascii() else raw.decode()):
        raise _bad_token(_byte_shown(raw) or why)
    data = orjson.loads(raw)
    if not isinstance(data, dict) or data.get("v") != _VERSION:
        shown = data.get("v", "") if isinstance(data, dict) else ""
        raise _bad_token(f"server does not recognize this encoded version {shown}")
    try:
        namespace, name = data["start"]
        return int(data["rv"]), float(data["since"]), (str(namespace), str(name))
    except (ValueError, KeyError, TypeError):
        raise _bad_token(f"incorrect encoded start resourceVersion (version {_VERSION})") from None


def _misplaced(token: str) -> str:
    """Where a text is no base64, as Go says it."""
    at = next((index for index, letter in enumerate(token) if not (letter.isalnum() or letter in "-_=")), None)
    return "" if at is None else f"illegal base64 data at input byte {at}"


def _byte_shown(raw: bytes) -> str:
    """What a JSON reader that looks at bytes says of a first one that is no JSON."""
    first = chr(raw[0]) if raw else ""
    return f"invalid character '{first}' looking for beginning of value" if first > "\x7f" else ""


def _bad_token(why: str) -> ApiError:
    return status.bad_request(f"invalid continue token: continue key is not valid: {why}")


def _expired(since: float, after: tuple[str, str]) -> ApiError:
    error = status.failure(410, "Expired", _TOO_OLD)
    error.status["metadata"] = {"continue": _encode(_PRESENT, since, after)}
    return error
