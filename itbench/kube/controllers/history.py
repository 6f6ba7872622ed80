"""ControllerRevisions: the template history of StatefulSets and DaemonSets. Called by those two controllers."""

import orjson

from itbench.kube.client import ApiError, Obj, Objs
from itbench.kube.controllers.base import Context, is_deleting, owner_reference, stable_hash
from itbench.kube.controllers.cache import controller_of, labels_of
from itbench.kube.controllers.selectors import matches

REVISIONS = "controllerrevisions.apps"


def revisions_of(context: Context, owner: Obj, label: str) -> Objs:
    """The owner's revisions, oldest first; orphans of its name that its selector matches are adopted."""
    meta = owner["metadata"]
    found = context.cache.owned(meta["uid"], REVISIONS)
    mine = [r for r in found if (controller_of(r) or {}).get("uid") == meta["uid"]]
    for orphan in context.cache.orphans(REVISIONS, meta["namespace"]):
        named = orphan["metadata"]["name"].startswith(meta["name"] + "-") and label in labels_of(orphan)
        if named and not is_deleting(orphan) and matches(owner["spec"]["selector"], labels_of(orphan)):
            refs = [*(orphan["metadata"].get("ownerReferences") or ()), owner_reference(owner)]
            name = orphan["metadata"]["name"]
            patch = {"metadata": {"ownerReferences": refs}}
            mine.append(context.client.patch(REVISIONS, name, meta["namespace"], patch))
    return sorted(mine, key=lambda r: (r.get("revision", 0), r["metadata"]["name"]))


def data_of(owner: Obj) -> Obj:
    """What a revision keeps: a strategic patch that replaces the template; keys sorted, as clients compare its bytes."""
    patch = {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}
    ordered: Obj = orjson.loads(orjson.dumps(patch, option=orjson.OPT_SORT_KEYS))
    return ordered


def template_hash(owner: Obj) -> str:
    """Hash of the owner's template."""
    collisions = (owner.get("status") or {}).get("collisionCount", 0)
    return stable_hash(orjson.dumps(data_of(owner), option=orjson.OPT_SORT_KEYS).hex(), collisions)


def sync_revision(context: Context, owner: Obj, label: str, annotations: Obj | None = None) -> tuple[Obj, Objs]:
    """The revision of the owner's present template: found, moved to the end when it came back, or made.

    Args:
        label: the label that carries the hash.
        annotations: of a new revision.

    Returns:
        That revision, and all revisions, oldest first.
    """
    known = revisions_of(context, owner, label)
    data, newest = data_of(owner), max((r.get("revision", 0) for r in known), default=0)
    equal = next((r for r in reversed(known) if r.get("data") == data), None)
    if equal is not None:
        if equal.get("revision", 0) < newest:
            moved = context.client.update(REVISIONS, {**equal, "revision": newest + 1})
            known = [*(r for r in known if r["metadata"]["name"] != moved["metadata"]["name"]), moved]
            equal = moved
        return equal, known
    meta, digest = owner["metadata"], template_hash(owner)
    labels = {**(owner["spec"]["template"].get("metadata") or {}).get("labels", {}), label: digest}
    body: Obj = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{meta['name']}-{digest}",
            "namespace": meta["namespace"],
            "labels": labels,
            "ownerReferences": [owner_reference(owner)],
        },
        "data": data,
        "revision": newest + 1,
    }
    if annotations:
        body["metadata"]["annotations"] = annotations
    made = context.client.create(REVISIONS, body, meta["namespace"])
    return made, [*known, made]


def trim(context: Context, owner: Obj, known: Objs, live: set[str]) -> None:
    """Delete the oldest revisions beyond the limit that nothing uses."""
    unused = [r for r in known if r["metadata"]["name"] not in live]
    limit = owner["spec"].get("revisionHistoryLimit", 10)
    for revision in unused[: max(0, len(unused) - limit)]:
        meta = revision["metadata"]
        try:
            context.client.delete(REVISIONS, meta["name"], meta["namespace"], uid=meta["uid"])
        except ApiError as error:
            if error.code != 404:
                raise
