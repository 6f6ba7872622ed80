"""Mutating and validating webhooks: who is asked about a write, in which order, and what becomes of the answers.

Mutating webhooks run one after the other; what they changed is shown once more to the plugins before them and to webhooks that
want to be asked again. Which way a failed call counts is the webhook's failure policy.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from itbench.core.errors import ItbenchError
from itbench.engines.cel_rules import Rule, evaluate
from itbench.kube import schema, status, versions
from itbench.kube.admission.attributes import data_of, decide, foreign
from itbench.kube.admission.matching import GROUP, Match, match
from itbench.kube.admission.reach import call, place_of
from itbench.kube.admission.review import Answer, CallFailed, answer, request
from itbench.kube.admission.services import Moved
from itbench.kube.admission.write import Plugin, Write
from itbench.kube.client import ApiError, Obj
from itbench.kube.decode import decode
from itbench.kube.kinds import behaviour
from itbench.kube.kinds.expressions import variables
from itbench.kube.patch.jsonpatch import apply_json_patch
from itbench.kube.resources import Resource

_ONCE = frozenset({"DELETE", "CONNECT"})
"""Operations whose object webhooks may not change."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook of a configuration."""

    name: str
    rules: Obj
    mutating: bool


def _hooks(write: Write, kind: str) -> Iterator[Hook]:
    for entry in write.store.list(f"{kind}webhookconfigurations.{GROUP}"):
        for row in entry.object.get("webhooks") or ():
            yield Hook(row["name"], row, kind == "mutating")


def mutating_webhooks(before: Sequence[Plugin]) -> Plugin:
    """The plugin; `before` are those whose work is done again after a webhook changed the object."""

    def run(write: Write) -> None:
        hooks = list(_hooks(write, "mutating"))
        if not hooks:
            return
        seen: dict[int, Obj | None] = {}
        changed = False
        for index, hook in enumerate(hooks):
            changed |= _mutate(write, hook)
            seen[index] = _copy(write)
        if not changed:
            return
        for plugin in before:
            plugin(write)
        for index, hook in enumerate(hooks):
            if hook.rules.get("reinvocationPolicy") == "IfNeeded" and seen[index] != write.object:
                _mutate(write, hook)

    return run


def _copy(write: Write) -> Obj:
    return {**write.object, "metadata": dict(write.object["metadata"])}


def mutating_webhooks_at_the_end(write: Write) -> None:
    """Deletes and connections: mutating webhooks are asked, but may change nothing."""
    if write.operation in _ONCE:
        for hook in _hooks(write, "mutating"):
            _mutate(write, hook)


def validating_webhooks(write: Write) -> None:
    """Ask every validating webhook that wants to see the write."""
    for hook in _hooks(write, "validating"):
        _ask(write, hook)


def _mutate(write: Write, hook: Hook) -> bool:
    """Whether a webhook changed the object."""
    found = _ask(write, hook)
    if found is None or found[1].patch is None or found[1].patch == []:
        return False
    if write.operation in _ONCE or foreign(write):
        text = f'admission webhook "{hook.name}" attempted to modify the object'
        raise status.internal(f"{text}, which is not supported for this operation")
    return _patch(write, found[0], found[1].patch)


# -- one call ----------------------------------------------------------------------------------------------------------------


def _ask(write: Write, hook: Hook) -> tuple[Match, Answer] | None:
    """Ask a webhook: what it says, None when it does not want to see the write or failed without harm.

    Raises:
        ApiError: it refuses, or it failed and its policy is Fail.
    """
    found = match(hook.rules, write, "rules")
    if found is None or not _conditions_hold(write, hook, found):
        return None
    timeout = hook.rules.get("timeoutSeconds", 10)
    uid = write.ids.uid("admission", hook.name)
    before = write.store.get(write.key, write.namespace, write.name)
    try:
        body = request(write, found.resource, uid, mutating=hook.mutating)
        place = place_of(hook.rules.get("clientConfig") or {}, timeout)
        verdict = answer(call(place, body, timeout, write.store, write.services), uid, mutating=hook.mutating)
    except CallFailed as error:
        verdict = None
        if hook.rules.get("failurePolicy") != "Ignore":
            raise status.internal(f'failed calling webhook "{hook.name}": {error}') from None
    if write.store.get(write.key, write.namespace, write.name) is not before:
        raise Moved
    if verdict is None:
        return None
    write.warnings += verdict.warnings
    write.notes += [f"{hook.name}/{note}" for note in verdict.notes]
    if not verdict.allowed:
        raise verdict.refusal(hook.name)
    return found, verdict


def _conditions_hold(write: Write, hook: Hook, found: Match) -> bool:
    texts = [row["expression"] for row in hook.rules.get("matchConditions") or ()]
    if not texts:
        return True
    data = data_of(write, found.resource)
    try:
        rows = evaluate([Rule(text) for text in texts], variables(), data, (), lambda asked: decide(write, asked))
        faults = [(text, row.fault or row.error) for text, row in zip(texts, rows, strict=True)]
    except ItbenchError as error:
        rows, faults = [], [(texts[0], str(error))]
    if any(row.value is False for row in rows):
        return False
    wrong = [f"expression '{text}' resulted in error: {fault}" for text, fault in faults if fault]
    if not wrong:
        return True
    if hook.rules.get("failurePolicy") == "Ignore":
        return False
    raise status.forbidden(write.resource, write.name, wrong[0])


# -- what a webhook changes --------------------------------------------------------------------------------------------------


def _patch(write: Write, found: Match, operations: Any) -> bool:
    """Bring a JSON patch of the shown object into the write."""
    resource = found.resource
    shown: Any = versions.to_served(_copy_deep(write.object), resource)
    for row in operations:
        shown = _step(shown, row)
    try:
        decoded = _decoded(shown, resource)
    except ApiError as error:
        raise status.internal(str(error).partition(f"cannot be handled as a {resource.kind}: ")[2]) from None
    new = versions.to_stored(decoded, resource, write.table)
    rules = resource.model.behaviour if resource.model is not None else behaviour(resource.storage)
    rules.default(new)
    kept = ("uid", "creationTimestamp", "name", "namespace")
    own = {key: write.object["metadata"][key] for key in kept if key in write.object["metadata"]}
    metadata = {**new.pop("metadata"), **own}
    before = _copy(write)
    _replace(write.object["metadata"], metadata)
    _replace(write.object, {**new, "metadata": write.object["metadata"]})
    return write.object != before


def _decoded(shown: Any, resource: Resource) -> Obj:
    """What is left of a patched object: what its schema knows, with the right types."""
    if resource.model is not None:
        return resource.model.decode(shown).object
    return decode(shown, schema.of(resource.api_version, resource.kind)).object


def _copy_deep(obj: Obj) -> Obj:
    import orjson

    copied: Obj = orjson.loads(orjson.dumps(obj))
    return copied


def _replace(target: Obj, values: Obj) -> None:
    """In place: the registry goes on with the same dictionaries."""
    target.clear()
    target.update(values)


def _step(shown: Any, row: Any) -> Any:
    try:
        return apply_json_patch(shown, [row])
    except ApiError:
        operation, path = row.get("op", ""), row.get("path", "")
        if operation == "test":
            raise status.internal(f"testing value {path} failed: test failed") from None
        said = f'{operation} operation does not apply: doc is missing path: "{path}": missing value'
        raise status.internal(said) from None
