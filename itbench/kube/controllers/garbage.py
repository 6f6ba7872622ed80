"""Garbage collector: what lost all its owners is deleted; foreground and orphan deletions are carried out.

Keys are (namespace, `resource/name`), since any kind may own and be owned.
"""

from itbench.kube.client import ApiError, Change, Obj
from itbench.kube.controllers.base import Context, Controller, is_deleting
from itbench.kube.controllers.cache import Cache, Key, Place

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


def _key(place: Place) -> Key:
    resource, namespace, name = place
    return namespace, f"{resource}/{name}"


def keys(change: Change, cache: Cache) -> list[Key]:
    """Whom a change of anything concerns: its dependents when it went, itself when its owners changed, waiting owners."""
    meta = change.object["metadata"]
    refs = meta.get("ownerReferences")
    before = change.previous["metadata"] if change.previous else {}
    old_refs = before.get("ownerReferences")
    found: list[Key] = []
    if change.type == "DELETED":
        found.extend(map(_key, cache.owned_places(meta["uid"])))
    elif (refs and refs != old_refs) or _has_finalizer(meta):
        found.append((meta.get("namespace", ""), f"{change.resource}/{meta['name']}"))
    if old_refs and (change.type == "DELETED" or refs != old_refs):
        found.extend(_waiting_owners(old_refs, cache))
    if change.type == "MODIFIED" and meta.get("deletionTimestamp") and not before.get("deletionTimestamp"):
        found.extend(map(_key, cache.owned_places(meta["uid"])))
    return found


def _has_finalizer(meta: Obj) -> bool:
    finalizers = meta.get("finalizers")
    return bool(finalizers and meta.get("deletionTimestamp") and (FOREGROUND in finalizers or ORPHAN in finalizers))


def _waiting_owners(refs: list[Obj], cache: Cache) -> list[Key]:
    found = []
    for ref in refs:
        owner = cache.by_uid(ref["uid"])
        if owner is not None and _has_finalizer(owner[1]["metadata"]):
            meta = owner[1]["metadata"]
            found.append((meta.get("namespace", ""), f"{owner[0]}/{meta['name']}"))
    return found


def reconcile(context: Context, namespace: str, name: str) -> None:
    """Look at one object: carry out its own deletion policy, then see whether anybody still owns it."""
    resource, _, name = name.partition("/")
    obj = context.cache.get(resource, namespace, name)
    if obj is None:
        return
    if _has_finalizer(obj["metadata"]):
        _finish(context, resource, obj)
    elif not is_deleting(obj):
        _judge(context, resource, obj)


def _finish(context: Context, resource: str, obj: Obj) -> None:
    uid = obj["metadata"]["uid"]
    places = context.cache.owned_places(uid)
    if ORPHAN in obj["metadata"]["finalizers"]:
        for place in places:
            _disown(context, place, {uid})
        _strip(context, resource, obj, ORPHAN)
        return
    blocking = False
    for place in places:
        dependent = context.cache.get(*place)
        if dependent is not None:
            blocking = blocking or _blocks(dependent, uid)
            if not is_deleting(dependent):
                _judge(context, place[0], dependent)
    if not blocking:
        _strip(context, resource, obj, FOREGROUND)


def _blocks(dependent: Obj, uid: str) -> bool:
    refs = dependent["metadata"].get("ownerReferences") or ()
    return any(ref["uid"] == uid and ref.get("blockOwnerDeletion") for ref in refs)


def _strip(context: Context, resource: str, obj: Obj, finalizer: str) -> None:
    meta = obj["metadata"]
    rest = [f for f in meta["finalizers"] if f != finalizer]
    patch = {"metadata": {"finalizers": rest or None, "uid": meta["uid"]}}
    _tolerating(lambda: context.client.patch(resource, meta["name"], meta.get("namespace", ""), patch))


def _judge(context: Context, resource: str, obj: Obj) -> None:
    """Delete an object whose owners are all gone or wait for it; drop references to gone owners while others remain."""
    solid, waiting, gone = [], [], []
    for ref in obj["metadata"].get("ownerReferences") or ():
        owner = context.cache.by_uid(ref["uid"])
        if owner is None:
            gone.append(ref)
        elif _waits(owner[1]):
            waiting.append(ref)
        else:
            solid.append(ref)
    meta = obj["metadata"]
    if solid and (gone or waiting):
        _disown(context, (resource, meta.get("namespace", ""), meta["name"]), {r["uid"] for r in gone + waiting})
    elif (gone or waiting) and not solid:
        foreground = bool(waiting and context.cache.owned_places(meta["uid"]))
        _delete(context, resource, obj, foreground=foreground)


def _waits(owner: Obj) -> bool:
    meta = owner["metadata"]
    return bool(meta.get("deletionTimestamp") and FOREGROUND in (meta.get("finalizers") or ()))


def _delete(context: Context, resource: str, obj: Obj, *, foreground: bool) -> None:
    meta = obj["metadata"]
    _tolerating(
        lambda: context.client.delete(
            resource,
            meta["name"],
            meta.get("namespace", ""),
            propagation="Foreground" if foreground else "Background",
            uid=meta["uid"],
        )
    )


def _disown(context: Context, place: Place, uids: set[str]) -> None:
    obj = context.cache.get(*place)
    if obj is None:
        return
    rest = [r for r in obj["metadata"].get("ownerReferences") or () if r["uid"] not in uids]
    patch = {"metadata": {"ownerReferences": rest or None}}
    _tolerating(lambda: context.client.patch(place[0], place[2], place[1], patch))


def _tolerating(call: object) -> None:
    """Somebody else may have been faster: then the work is done."""
    assert callable(call)
    try:
        call()
    except ApiError as error:
        if error.code not in (404, 409):
            raise


CONTROLLER = Controller("garbage-collector", {"*": keys}, reconcile)
