"""The control plane's verbs on objects: the one way to read and write the store. No HTTP, no authorization.

    registry = Registry(store=Store(), ids=Ids(seed), now=lambda: plane.now)
    res = registry.table.lookup("apps", "v1", "deployments")            # Resource; .named("deployments.apps"), .by_kind(gv, kind)
    registry.get(res, "web", "shop") -> Entry                           # O(1), shared; 404 ApiError
    registry.list(res, "shop", ListQuery(labels=..., fields=..., limit=500, token=...)) -> Page
    registry.read(res, "web", "shop", "scale") -> Obj                   # GET of status, scale and other subresources
    registry.view(res, entry) -> Obj                                    # the entry's object in the version asked for
    registry.matcher(res, labels, fields) -> Callable[[Obj], bool]      # for watches; on stored objects
    registry.create(res, body, "shop", options) -> Result
    registry.update(res, "web", "shop", body, options, subresource="") -> Result
    registry.patch(res, "web", "shop", PatchBody("merge", {...}), options, subresource="") -> Result
    registry.delete(res, "web", "shop", DeleteOptions(...), options) -> Result       # Result.object: Status, or the object marked
    registry.delete_collection(res, "shop", ListQuery(...), DeleteOptions(...), options) -> list[Entry]
    registry.post(res, "web-0", "shop", "eviction" | "binding", body, options) -> Result

Every verb raises `ApiError`. `Store.since` is the watch log.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import orjson

from itbench.core.clock import rfc3339
from itbench.core.ids import Ids
from itbench.kube import admission, aspects, deletion, pages, schema, status, subresources, versions
from itbench.kube.admission import Operation, Plugin, Services, Write
from itbench.kube.client import ApiError, Obj
from itbench.kube.custom import hook, serving, typed
from itbench.kube.decode import check_depth, converter_text, decode, handled_as
from itbench.kube.duplicates import NONE
from itbench.kube.headings import check_type_meta, configuration
from itbench.kube.kinds import creation, podparts
from itbench.kube.kinds.check import Check
from itbench.kube.kinds.metadata import check_metadata, check_metadata_update
from itbench.kube.patch import lastapplied, managed
from itbench.kube.patch.jsonpatch import apply_json_patch
from itbench.kube.patch.merge import apply_merge_patch
from itbench.kube.patch.strategic import apply_strategic_patch, go_map
from itbench.kube.requests import DeleteOptions, Entries, ListQuery, Now, Options, Page, PatchBody, Result, Texts
from itbench.kube.resources import Resource, ResourceTable, builtin_table
from itbench.kube.selectors import predicate
from itbench.kube.status import Cause
from itbench.kube.store import Entry, Store

_UNTRACKED = frozenset({"events", "leases.coordination.k8s.io"})
"""Resources without managedFields: written often, never applied."""
_CONDITIONAL = frozenset({serving.DEFINITIONS, "apiservices.apiregistration.k8s.io"})
"""Built-in resources that are only updated with a resourceVersion, as custom ones are."""
_CONNECTED = frozenset({"exec", "attach", "portforward", "proxy"})
_NAME_TRIES = 8
_WRITERS_OF_MANAGED = ("json", "merge", "strategic")


class Registry:
    """Verbs over one store. Holds no state of its own besides the store and the table."""

    def __init__(
        self,
        *,
        store: Store,
        ids: Ids,
        now: Now,
        table: ResourceTable | None = None,
        mutating: Sequence[Plugin] | None = None,
        validating: Sequence[Plugin] | None = None,
    ) -> None:
        self.store = store
        self.ids = ids
        self.now = now
        self._stamped: tuple[float, str] = (float("nan"), "")
        self._table = table or builtin_table()
        self._definitions: list[Entry] = []
        self.services = Services()
        self._served = serving.Served(hook.converter(store, self.services))
        self.mutating = list(admission.MUTATING if mutating is None else mutating)
        self.validating = list(admission.VALIDATING if validating is None else validating)

    @property
    def table(self) -> ResourceTable:
        """What is served now: custom resources follow the definitions in the store, whatever put them there."""
        listed = self.store.list(serving.DEFINITIONS)
        if listed is not self._definitions and (listed or self._definitions):
            self._definitions = listed
            self._table.serve_custom(self._served.rows(listed))
        return self._table

    # -- reading ---------------------------------------------------------------------------------------------------------

    def get(self, resource: Resource, name: str, namespace: str = "") -> Entry:
        """The entry; raises 404."""
        entry = self.store.get(resource.storage, namespace, name)
        if entry is None:
            raise status.not_found(resource, name)
        return entry

    def list(self, resource: Resource, namespace: str = "", query: ListQuery | None = None) -> Page:
        """Entries sorted by namespace and name."""
        if query is None:
            return Page(self.store.list(resource.storage, namespace), self.store.revision)
        test = self.matcher(resource, query.labels, query.fields)
        entries, revision = pages.begin(self.store, resource, namespace, query, self.now())
        if test is not None:
            entries = [entry for entry in entries if test(entry.object)]
        if not query.limit or len(entries) <= query.limit:
            return Page(entries, revision)
        page = entries[: query.limit]
        remaining = 0 if test is not None else len(entries) - query.limit
        return Page(page, revision, pages.write_token(revision, page[-1], self.now()), remaining)

    def matcher(self, resource: Resource, labels: str = "", fields: str = "") -> Callable[[Obj], bool] | None:
        """One test for both selectors on stored objects, None when there is nothing to test; raises 400."""
        model = resource.model
        test = predicate(resource.storage, labels, fields, model.selectable if model is not None else None)
        if test is None or not fields or model is None or model.stored_version == resource.version:
            return test
        return lambda obj: test(model.read(obj))

    def view(self, resource: Resource, entry: Entry) -> Obj:
        """The entry's object in the version of `resource` (the shared object itself where that is the stored one)."""
        return versions.to_served(entry.object, resource)

    def read(self, resource: Resource, name: str, namespace: str, subresource: str) -> Obj:
        """GET of a subresource."""
        entry = self.get(resource, name, namespace)
        if subresource == "scale":
            return subresources.scale_of(resource, entry.object)
        return self.view(resource, entry)

    # -- writing ---------------------------------------------------------------------------------------------------------

    def create(self, resource: Resource, body: Obj, namespace: str, options: Options) -> Result:
        """POST."""
        warnings: list[str] = []
        obj = self._decode(resource, body, options, warnings)
        self._place(resource, obj, namespace)
        return self._create(resource, obj, options, warnings)

    def _create(
        self,
        resource: Resource,
        obj: Obj,
        options: Options,
        warnings: Texts,
        entries: managed.Entries | None = None,
    ) -> Result:
        rules = aspects.rules_of(resource)
        if resource.model is not None and resource.model.terminating:
            why = "create not allowed while custom resource definition is terminating"
            raise status.forbidden(resource, obj["metadata"].get("name", ""), why)
        self._begin(resource, obj)
        write = self._write("CREATE", resource, obj, None, options, "", warnings)
        rules.default(obj)
        self._own(resource, {}, obj, options, "", entries)
        for plugin in self.mutating:
            plugin(write)
        rules.prepare(obj, None)
        check = Check()
        check_metadata(obj, resource, rules, check)
        rules.validate(obj, check)
        creation.check_new(resource, obj, check)
        if check:
            group = "" if resource.storage == "events" else resource.group
            raise status.invalid(resource.kind, group, obj["metadata"].get("name", ""), check.causes)
        warnings += aspects.advice(resource, obj, {})
        metadata = obj["metadata"]
        if self.store.get(resource.storage, metadata.get("namespace", ""), metadata["name"]) is not None:
            raise status.already_exists(resource, metadata["name"])
        for plugin in (*admission.ALLOCATING, *self.validating):
            plugin(write)
        if rules.generation:
            metadata["generation"] = 1
        if options.dry_run:
            metadata.pop("resourceVersion", None)
            return Result(versions.to_served(obj, resource), created=True, warnings=warnings)
        entry = self.store.put(resource.storage, obj)
        return Result(self.view(resource, entry), entry, True, warnings)

    def _begin(self, resource: Resource, obj: Obj) -> None:
        """Server-set metadata of a new object."""
        metadata = obj["metadata"]
        if metadata.get("resourceVersion"):
            raise status.failure(500, "", "resourceVersion should not be set on objects to be created")
        for key in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
            metadata.pop(key, None)
        namespace = metadata.get("namespace", "")
        if not metadata.get("name") and metadata.get("generateName"):
            stem = (
                metadata["generateName"][: 63 - 5] if len(metadata["generateName"]) > 58 else metadata["generateName"]
            )
            for _ in range(_NAME_TRIES):
                metadata["name"] = stem + self.ids.suffix(resource.storage, namespace, stem)
                if self.store.get(resource.storage, namespace, metadata["name"]) is None:
                    break
        metadata["uid"] = self.ids.uid(resource.storage, namespace, metadata.get("name", ""))
        metadata["creationTimestamp"] = self._stamp()
        if resource.has_status:
            initial = subresources.initial_status(resource, obj)
            if initial is None:
                obj.pop("status", None)
            else:
                obj["status"] = initial

    def update(
        self, resource: Resource, name: str, namespace: str, body: Obj, options: Options, subresource: str = ""
    ) -> Result:
        """PUT."""
        if subresource == "scale":
            return self._scale(resource, name, namespace, body, options)
        warnings: list[str] = []
        obj = self._decode(resource, body, options, warnings)
        self._place(resource, obj, namespace)
        aspects.check_name(obj, name)
        old = self.get(resource, name, namespace)
        if (resource.model is not None or resource.storage in _CONDITIONAL) and not aspects.revision_of(obj):
            cause = Cause(
                "FieldValueInvalid", "metadata.resourceVersion", "Invalid value: 0: must be specified for an update"
            )
            raise status.invalid(resource.plural, resource.group, name, [cause])
        return self._change(resource, old, obj, options, subresource, warnings)

    def _change(
        self,
        resource: Resource,
        old: Entry,
        obj: Obj,
        options: Options,
        subresource: str,
        warnings: Texts,
        entries: managed.Entries | None = None,
    ) -> Result:
        """Bring a new state of an existing object into the store."""
        before = old.object
        metadata = obj["metadata"]
        self._preconditions(resource, old, metadata)
        rules = aspects.rules_of(resource)
        obj = subresources.limit(resource, obj, before, subresource)
        metadata = obj["metadata"]
        sent = metadata.get("managedFields")
        for key in ("creationTimestamp", "uid", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"):
            if key in before["metadata"]:
                metadata[key] = before["metadata"][key]
            else:
                metadata.pop(key, None)
        write = self._write("UPDATE", resource, obj, before, options, subresource, warnings)
        rules.default(obj)
        self._own(resource, before, obj, options, subresource, entries, sent)
        for plugin in self.mutating:
            plugin(write)
        rules.prepare(obj, before)
        self._validate_change(resource, obj, before, subresource)
        warnings += aspects.advice(resource, obj, before)
        for plugin in (*admission.ALLOCATING, *self.validating):
            plugin(write)
        if rules.generation and subresource != "status" and subresources.bumps_generation(resource, obj, before):
            metadata["generation"] = before["metadata"].get("generation", 0) + 1
        if entries is not None:
            managed.keep_times(obj, before)
        return self._commit(resource, old, obj, options, warnings)

    def _commit(self, resource: Resource, old: Entry, obj: Obj, options: Options, warnings: Texts) -> Result:
        before, metadata = old.object, obj["metadata"]
        metadata["resourceVersion"] = before["metadata"]["resourceVersion"]
        if obj == before:
            return Result(self.view(resource, old), old, False, warnings, old)
        if options.dry_run:
            return Result(versions.to_served(obj, resource), None, False, warnings, old)
        if deletion.is_done(resource, obj):
            # Watchers see one deletion; who took the last finalizer away gets back what was asked for.
            gone = self.store.remove(resource.storage, old.namespace, old.name)
            entry = Entry(resource.storage, obj, gone.revision)
            return Result(versions.to_served(obj, resource), entry, False, warnings, old)
        entry = self.store.put(resource.storage, obj)
        return Result(self.view(resource, entry), entry, False, warnings, old)

    def _validate_change(self, resource: Resource, obj: Obj, before: Obj, subresource: str) -> None:
        rules = aspects.rules_of(resource)
        check = Check()
        check_metadata_update(obj, before, check)
        check_metadata(obj, resource, rules, check)
        if resource.model is not None:
            resource.model.check(obj, before, check, status=subresource == "status")
        elif subresource != "status":
            rules.validate(obj, check)
        change = podparts.CHANGES.get((resource.storage, subresource))
        if change is not None:
            change(obj, before, check)
        elif subresource != "status":
            rules.validate_update(obj, before, check)
        if check:
            raise status.invalid(resource.kind, resource.group, obj["metadata"]["name"], check.causes)

    def patch(
        self, resource: Resource, name: str, namespace: str, patch: PatchBody, options: Options, subresource: str = ""
    ) -> Result:
        """PATCH of any kind."""
        if patch.kind == "apply":
            return self._apply(resource, name, namespace, patch.value, options, subresource)
        old = self.get(resource, name, namespace)
        if subresource == "scale":
            scale = self._patched(None, subresources.scale_of(resource, old.object), patch)
            why = subresources.scale_fault(scale)
            if why:
                raise status.bad_patch(orjson.dumps(scale).decode(), why)
            return self._scale(resource, name, namespace, scale, options)
        if resource.custom and patch.kind == "strategic":
            raise status.unsupported_media_type(
                ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
            )
        node = aspects.node_of(resource)
        current = versions.to_served(old.copy(), resource)
        revision = current["metadata"]["resourceVersion"]
        changed = self._patched(node, current, patch)
        warnings: list[str] = []
        obj = self._decode_patched(resource, changed, patch, options, warnings)
        aspects.check_uid(resource, obj, old)
        aspects.check_name(obj, name)
        self._place(resource, obj, namespace)
        if obj["metadata"].get("resourceVersion") == revision:
            del obj["metadata"]["resourceVersion"]
        return self._change(resource, old, obj, options, subresource, warnings)

    def _decode_patched(
        self, resource: Resource, changed: Obj, patch: PatchBody, options: Options, warnings: Texts
    ) -> Obj:
        """Like `_decode`, but what is wrong is blamed on the patch."""
        changed.setdefault("apiVersion", resource.api_version)
        changed.setdefault("kind", resource.kind)
        try:
            return self._decode(resource, changed, options, warnings)
        except ApiError as error:
            _, found, why = str(error).partition(f"cannot be handled as a {resource.kind}: ")
            if not found:
                raise
            if patch.kind != "strategic":
                option = orjson.OPT_SORT_KEYS if resource.model is not None else 0
                raise status.bad_patch(orjson.dumps(changed, option=option).decode(), why) from None
            raise status.bad_patch(go_map(patch.value), converter_text(why)) from None

    def _decode_config(self, resource: Resource, config: Obj, name: str) -> Obj:
        """An apply configuration as it was sent; unknown fields are always an error."""
        if resource.model is not None:
            resource.model.check_config(config, name)
        try:
            return self._decode(resource, config, Options(validation="Strict"), [], raw=True)
        except ApiError as error:
            _, found, path = str(error).partition('strict decoding error: unknown field "')
            if not found:
                raise
            place = (config.get("metadata") or {}).get("namespace", "")
            version = f"{'' if resource.group else '/'}{resource.api_version}"
            what = f"({place}/{name}; {version}, Kind={resource.kind})"
            path = path.split('"')[0]
            text = f"failed to create typed patch object {what}: .{path}: field not declared in schema"
            raise status.failure(500, "", text) from None

    def _patched(self, node: schema.Node | None, current: Obj, patch: PatchBody) -> Obj:
        value: Any = patch.value
        if patch.kind == "json":
            out = apply_json_patch(current, value)
        elif not isinstance(value, dict):
            raise status.bad_request(
                "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
            )
        elif patch.kind == "merge":
            out = apply_merge_patch(current, value)
        else:
            out = apply_strategic_patch(current, value, node)
        if patch.kind == "json":
            check_depth(out)
        if not isinstance(out, dict):
            raise status.unprocessable("the server rejected our request due to an error in our request")
        return out

    def _apply(
        self, resource: Resource, name: str, namespace: str, config: Any, options: Options, subresource: str
    ) -> Result:
        """Server-side apply, creating the object where it is missing."""
        if not isinstance(config, dict):
            raise status.bad_request("error decoding YAML: the body is not an object")
        if not options.manager:
            raise status.bad_request(
                'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
            )
        config = configuration(config)
        if (config.get("metadata") or {}).get("managedFields"):
            raise status.bad_request("metadata.managedFields must be nil")
        if not config.get("apiVersion") or not config.get("kind"):
            group, _, version = str(config.get("apiVersion", "")).rpartition("/")
            raise status.bad_request(f"invalid object type: {group}/{version}, Kind={config.get('kind', '')}")
        warnings: list[str] = []
        node = aspects.node_of(resource)
        if resource.model is None:
            typed.check_nodes(config, node, name)
        sent = self._decode_config(resource, config, name)
        if options.duplicates.found and options.validation == "Strict":
            text = options.duplicates.error([])
            raise status.bad_request(f"error strict decoding YAML: error converting YAML to JSON: {text}")
        if options.validation != "Ignore":
            warnings += options.duplicates.warnings([])
            options = replace(options, duplicates=NONE, validation="Ignore")
        sent = subresources.tracked(resource, sent, subresource)
        writer = self._writer(resource, options, subresource)
        old = self.store.get(resource.storage, namespace, name)
        if old is None:
            if subresource:
                raise status.not_found(resource, name)
            obj = self._decode(resource, config, options, [])
            self._place(resource, obj, namespace)
            aspects.check_name(obj, name)
            entries = managed.apply({}, sent, node, writer, force=True).entries
            return self._create(resource, obj, options, warnings, entries)
        live = versions.to_served(old.copy(), resource)
        outcome = managed.apply(live, sent, node, writer, force=options.force)
        obj = self._decode(resource, outcome.object, options, [])
        aspects.check_name(obj, name)
        obj["metadata"]["managedFields"] = outcome.entries
        lastapplied.follow(obj, config, options.manager)
        if "resourceVersion" not in (config.get("metadata") or {}):
            obj["metadata"].pop("resourceVersion", None)
        return self._change(resource, old, obj, options, subresource, warnings, outcome.entries)

    def _scale(self, resource: Resource, name: str, namespace: str, body: Obj, options: Options) -> Result:
        old = self.get(resource, name, namespace)
        obj = subresources.scaled(resource, old, body)
        done = self._change(resource, old, obj, options, "scale", [])
        shown = done.entry.object if done.entry is not None else done.object
        return Result(subresources.scale_of(resource, shown), None, False, done.warnings, done.before)

    def delete(
        self, resource: Resource, name: str, namespace: str, how: DeleteOptions | None, options: Options
    ) -> Result:
        """DELETE."""
        return deletion.delete(self, resource, self.get(resource, name, namespace), how or DeleteOptions(), options)

    def delete_collection(
        self, resource: Resource, namespace: str, query: ListQuery, how: DeleteOptions, options: Options
    ) -> Entries:
        """DELETE of a list; returns what it selected."""
        entries = list(self.list(resource, namespace, query).entries)
        for entry in entries:
            deletion.delete(self, resource, entry, how, options)
        return entries

    def post(
        self, resource: Resource, name: str, namespace: str, subresource: str, body: Obj, options: Options
    ) -> Result:
        """POST to a subresource: `binding` and `eviction` of pods."""
        return subresources.post(self, resource, self.get(resource, name, namespace), subresource, body, options)

    def _stamp(self) -> str:
        """Now, as objects carry it (a write asks several times)."""
        now = self.now()
        if now != self._stamped[0]:
            self._stamped = (now, rfc3339(now))
        return self._stamped[1]

    def admit(
        self, resource: Resource, name: str, namespace: str, subresource: str, obj: Obj, options: Options
    ) -> None:
        """Ask policies and webhooks about a connection, or about what is posted to a subresource."""
        operation: Operation = "CONNECT" if subresource in _CONNECTED else "CREATE"
        write = self._write(operation, resource, obj, None, options, subresource, [])
        write.parent, write.namespace = name, namespace
        for plugin in admission.CONNECTING:
            plugin(write)

    # -- parts -----------------------------------------------------------------------------------------------------------

    def _decode(self, resource: Resource, body: Any, options: Options, warnings: Texts, *, raw: bool = False) -> Obj:
        """A private copy in the stored version (in the version sent when `raw`), unknown fields handled as asked for."""
        if not isinstance(body, dict):
            raise status.bad_request("the body of the request is not a JSON object")
        if resource.model is not None:
            typed.check_type(body, resource.api_version, resource.kind)
        kind, api_version = body.get("kind") or resource.kind, body.get("apiVersion") or resource.api_version
        check_type_meta(kind, api_version, resource)
        if (kind, api_version) != (resource.kind, resource.api_version):
            raise self._wrong_kind(resource, api_version, kind)
        if not body.get("kind") or not body.get("apiVersion"):
            body = {**body, "kind": kind, "apiVersion": api_version}
        if resource.model is not None:
            decoded = resource.model.decode(body, raw=raw)
        else:
            decoded = decode(body, schema.of(resource.api_version, resource.kind), raw=raw)
        if options.validation != "Ignore" and (decoded.unknown or options.duplicates.found):
            if options.validation == "Strict":
                text = "strict decoding error: " + options.duplicates.error(decoded.unknown)
                raise handled_as({**body, "kind": kind, "apiVersion": api_version}, text)
            warnings += options.duplicates.warnings(decoded.unknown)
        obj = decoded.object
        obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind
        if not isinstance(obj.get("metadata"), dict):
            obj["metadata"] = {}
        ordered = {"apiVersion": obj.pop("apiVersion"), "kind": obj.pop("kind"), "metadata": obj.pop("metadata"), **obj}
        return ordered if raw else versions.to_stored(ordered, resource, self.table)

    def _wrong_kind(self, resource: Resource, api_version: str, kind: str) -> ApiError:
        """400: the body is an object of another kind than the path."""
        version = api_version.rsplit("/", 1)[-1]
        other = self.table.by_kind(api_version, kind)
        if other is None:
            why = f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:110"'
        else:
            group = resource.group.split(".")[0] or "core"
            why = f"converting ({version}.{kind}) to ({group}.{resource.kind}): unknown conversion"
        return status.bad_request(f'{kind} in version "{version}" cannot be handled as a {resource.kind}: {why}')

    def _place(self, resource: Resource, obj: Obj, namespace: str) -> None:
        """Bring the object's namespace and the request's together."""
        metadata = obj["metadata"]
        if not resource.namespaced:
            metadata.pop("namespace", None)
        elif metadata.get("namespace", namespace) != namespace and namespace:
            raise status.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        elif namespace:
            metadata["namespace"] = namespace

    def _preconditions(self, resource: Resource, old: Entry, metadata: Obj) -> None:
        version, uid = metadata.get("resourceVersion"), metadata.get("uid")
        current = old.object["metadata"]
        if uid and uid != current["uid"]:
            key = "/".join(part for part in ("/registry", resource.plural, old.namespace, old.name) if part)
            text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current['uid']}"
            text = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {text}"
            raise status.conflict(resource, old.name, text)
        if version and not version.isdigit():
            raise status.failure(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
        if version and version != "0" and version != current["resourceVersion"]:
            raise status.conflict(resource, old.name)

    def _write(
        self,
        operation: Operation,
        resource: Resource,
        obj: Obj,
        old: Obj | None,
        options: Options,
        subresource: str,
        warnings: Texts,
    ) -> Write:
        return Write(
            store=self.store,
            table=self.table,
            ids=self.ids,
            resource=resource,
            operation=operation,
            object=obj,
            old=old,
            subresource=subresource,
            namespace=(obj.get("metadata") or {}).get("namespace", ""),
            user=options.user,
            groups=options.groups,
            dry_run=options.dry_run,
            warnings=warnings,
            uid=options.uid,
            extra=options.extra,
            asked=options.asked,
            stamp=self._stamp(),
            services=self.services,
            notes=options.notes,
        )

    def _writer(self, resource: Resource, options: Options, subresource: str) -> managed.Writer:
        time = "" if subresource == "scale" else self._stamp()
        return managed.Writer(options.manager, resource.api_version, time, subresource)

    def _own(
        self,
        resource: Resource,
        before: Obj,
        obj: Obj,
        options: Options,
        subresource: str,
        entries: managed.Entries | None,
        sent: Any = None,
    ) -> None:
        """Set managedFields: from an apply, from the client that wrote them, or from what changed."""
        metadata = obj["metadata"]
        if resource.storage in _UNTRACKED:
            return
        if entries is None:
            known = before.get("metadata", {}).get("managedFields", [])
            if sent is not None and sent != known:
                known = managed.accept(sent, known)
            node = aspects.node_of(resource)
            old, new = (
                subresources.tracked(resource, versions.to_served(state, resource) if state else state, subresource)
                for state in (before, obj)
            )
            entries = managed.record_update(known, old, new, node, self._writer(resource, options, subresource))
        if entries:
            metadata["managedFields"] = entries
        else:
            metadata.pop("managedFields", None)
