"""Reads and writes of resources: translates HTTP to the registry's verbs and back; called by `server`."""

from typing import Any

from aiohttp import web

from itbench.kube.api import answers, bodies, views
from itbench.kube.api.answers import Form
from itbench.kube.api.door import Call
from itbench.kube.client import Obj
from itbench.kube.requests import ListQuery, Options, Page, PatchBody, Result
from itbench.kube.resources import Resource
from itbench.kube.status import Problem, bad_request, method_not_allowed
from itbench.kube.store import Entry

_DEPRECATED = {
    ("", "v1", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ("", "v1", "componentstatuses"): "v1 ComponentStatus is deprecated in v1.19+",
}
_SCALED = "scale"
_POSTED = {"eviction": ("policy/v1", "Eviction"), "binding": ("v1", "Binding")}


def refuse_method() -> Exception:
    """405."""
    return method_not_allowed("the server does not allow this method on the requested resource", Problem())


def deprecation(resource: Resource) -> tuple[str, ...]:
    """Warnings that go with every use of a resource."""
    if resource.model is not None:
        return (resource.model.warning,) if resource.model.warning else ()
    text = _DEPRECATED.get((resource.group, resource.version, resource.plural))
    return (text,) if text else ()


# -- reads -----------------------------------------------------------------------------------------------------------------


def get(call: Call) -> web.Response:
    """GET of one object or of a readable subresource."""
    target, resource, registry = call.target, call.resource, call.door.registry
    namespace = target.namespace if resource.namespaced else ""
    if target.subresource:
        return call.answer(registry.read(resource, target.name, namespace, target.subresource))
    entry = registry.get(resource, target.name, namespace)
    return _entry_answer(call, resource, entry, 200, deprecation(resource))


def _entry_answer(
    call: Call, resource: Resource, entry: Entry, code: int, warnings: "list[str] | tuple[str, ...]"
) -> web.Response:
    """A stored object in the form asked for; plain JSON comes from the entry's cached bytes."""
    form = call.form
    if form.kind in ("table", "partial"):
        return call.answer(views.single(call, resource, entry), code, warnings)
    body = call.door.clock.served(answers.object_bytes(resource, entry))
    return call.wrap(body, code, form, warnings)


def list_query(call: Call) -> ListQuery:
    """Selectors and paging of a list from its query."""
    query = call.query
    limit = query.get("limit", "0")
    if not limit.removeprefix("-").isdigit():
        raise bad_request(f'strconv.ParseInt: parsing "{limit}": invalid syntax')
    at = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    return ListQuery(
        query.get("labelSelector", ""),
        query.get("fieldSelector", ""),
        max(0, int(limit)),
        query.get("continue", ""),
        *at,
        initial="sendInitialEvents" in query,
    )


def list_meta(page: Page) -> Obj:
    """The ListMeta of one page."""
    meta: Obj = {"resourceVersion": str(page.revision)}
    if page.token:
        meta["continue"] = page.token
    if page.remaining:
        meta["remainingItemCount"] = page.remaining
    return meta


def list_objects(call: Call) -> web.Response:
    """GET of a collection."""
    resource, form = call.resource, call.form
    namespace = call.target.namespace if resource.namespaced else ""
    page = call.door.registry.list(resource, namespace, list_query(call))
    meta, warnings = list_meta(page), deprecation(resource)
    if form.kind == "table":
        return call.answer(views.table(call, resource, page.entries, meta), 200, warnings)
    if form.kind == "partial":
        objects = [entry.object for entry in page.entries]
        return call.answer(answers.partial_list(objects, meta, form.version), 200, warnings)
    body = call.door.lists.body(resource, namespace, page.entries, meta)
    return call.wrap(body, 200, form, warnings)


# -- writes ----------------------------------------------------------------------------------------------------------------


def _stored(call: Call) -> Entry | None:
    target, resource = call.target, call.resource
    namespace = target.namespace if resource.namespaced else ""
    return call.door.store.get(resource.storage, namespace, target.name) if target.name else None


def _note(call: Call, options: Options) -> None:
    """What the audit says of the options; admission adds its notes to them."""
    call.trace.manager, call.trace.dry, call.trace.notes = options.manager, options.dry_run, options.notes


async def _body(call: Call, options: Options) -> tuple[Obj, Options]:
    """The object that was sent, and the options that know what its bytes set twice."""
    raw = await call.request.read()
    sent = bodies.read_object(raw, call.content_type, call.resource.kind)
    entry = _stored(call)
    received: Obj = call.door.clock.received(sent, entry.object if entry is not None else None)
    return received, bodies.duplicates_of(options, raw, call.content_type)


def _finish(call: Call, result: Result, code: int) -> web.Response:
    """Note a write for the audit, let staging settle, answer."""
    trace, resource = call.trace, call.resource
    trace.before = result.before.object if result.before is not None else None
    trace.after = result.entry.object if result.entry is not None else None
    warnings = [*deprecation(resource), *result.warnings]
    if not trace.dry:
        call.door.pacer.settle()
    call.door.poke()
    if result.entry is not None and result.object.get("kind") == resource.kind and call.target.subresource != _SCALED:
        return _entry_answer(call, resource, result.entry, code, warnings)
    if call.form.kind in ("table", "partial") and result.object.get("kind") == resource.kind:
        entry = Entry(resource.storage, result.object, call.door.store.revision)
        return call.answer(views.single(call, resource, entry), code, warnings)
    return call.answer(result.object, code, warnings)


async def create(call: Call) -> web.Response:
    """POST to a collection."""
    resource, target = call.resource, call.target
    options = bodies.write_options(call.query, call.user, call.agent)
    body, options = await _body(call, options)
    _note(call, options)
    namespace = target.namespace if resource.namespaced else ""
    if resource.namespaced and not namespace:
        raise refuse_method()
    metadata = body.get("metadata")
    call.trace.name = str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
    result = await call.door.weave.run(lambda: call.door.registry.create(resource, body, namespace, options))
    call.trace.name = result.object["metadata"].get("name", "")
    return _finish(call, result, 201)


async def update(call: Call) -> web.Response:
    """PUT of an object or subresource."""
    resource, target = call.resource, call.target
    options = bodies.write_options(call.query, call.user, call.agent, "update")
    _note(call, options)
    body, options = await _body(call, options)
    namespace = target.namespace if resource.namespaced else ""
    registry = call.door.registry
    result = await call.door.weave.run(
        lambda: registry.update(resource, target.name, namespace, body, options, target.subresource)
    )
    return _finish(call, result, 201 if result.created else 200)


async def patch(call: Call) -> web.Response:
    """PATCH of an object or subresource."""
    resource, target = call.resource, call.target
    options = bodies.write_options(call.query, call.user, call.agent, "patch")
    content = await call.request.read()
    raw = bodies.read_patch(content, call.content_type)
    bodies.check_patch_options(raw.kind, call.query)
    options = bodies.duplicates_of(options, content, call.content_type)
    _note(call, options)
    call.trace.detail = raw.kind
    entry = _stored(call)
    value = call.door.clock.received(raw.value, entry.object if entry is not None else None)
    namespace = target.namespace if resource.namespaced else ""
    sent = PatchBody(raw.kind, value)
    registry = call.door.registry
    result = await call.door.weave.run(
        lambda: registry.patch(resource, target.name, namespace, sent, options, target.subresource)
    )
    return _finish(call, result, 201 if result.created else 200)


async def delete(call: Call) -> web.Response:
    """DELETE of one object."""
    resource, target = call.resource, call.target
    how, dry = bodies.delete_options(await call.request.read(), call.content_type, call.query)
    options = bodies.write_options({**call.query, "dryRun": "All" if dry else ""}, call.user, call.agent)
    _note(call, options)
    namespace = target.namespace if resource.namespaced else ""
    result = await call.door.weave.run(
        lambda: call.door.registry.delete(resource, target.name, namespace, how, options)
    )
    return _finish(call, result, 200)


async def delete_collection(call: Call) -> web.Response:
    """DELETE of a collection: answers the list of what it selected. Not of all namespaces at once."""
    resource = call.resource
    if resource.namespaced and not call.target.namespace:
        raise method_not_allowed("the server does not allow this method on the requested resource", Problem())
    how, dry = bodies.delete_options(await call.request.read(), call.content_type, call.query)
    options = bodies.write_options({**call.query, "dryRun": "All" if dry else ""}, call.user, call.agent)
    _note(call, options)
    namespace = call.target.namespace if resource.namespaced else ""
    query = list_query(call)
    entries = await call.door.weave.run(
        lambda: call.door.registry.delete_collection(resource, namespace, query, how, options)
    )
    call.trace.detail = ",".join(entry.name for entry in entries)
    if not dry:
        call.door.pacer.settle()
    call.door.poke()
    meta = {"resourceVersion": str(call.door.store.revision)}
    body = call.door.lists.body(resource, namespace, entries, meta)
    return call.wrap(body, 200, call.form if call.form.kind == "yaml" else Form("json"), ())


async def post(call: Call, subresource: str) -> web.Response:
    """POST to a subresource that the registry serves: `eviction` and `binding` of pods."""
    target = call.target
    options = bodies.write_options(call.query, call.user, call.agent)
    raw = await call.request.read()
    kind = _POSTED[subresource]
    body: Any = call.door.clock.received(bodies.read_typed(raw, call.content_type, *kind))
    name = target.name or (body.get("metadata") or {}).get("name", "")
    dry = options.dry_run or bool((body.get("deleteOptions") or {}).get("dryRun"))
    options = bodies.write_options({**call.query, "dryRun": "All" if dry else ""}, call.user, call.agent)
    _note(call, options)
    call.trace.name = name
    pods = call.door.registry.table.named("pods")
    result = await call.door.weave.run(
        lambda: call.door.registry.post(pods, name, target.namespace, subresource, body, options)
    )
    call.trace.before = result.before.object if result.before is not None else None
    after = call.door.store.get("pods", target.namespace, name)
    call.trace.after = after.object if after is not None else None
    if not dry:
        call.door.pacer.settle()
    call.door.poke()
    return call.answer(result.object, 201, result.warnings)
