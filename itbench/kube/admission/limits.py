"""LimitRange: default requests and limits, and bounds on them."""

from fractions import Fraction

from itbench.kube import status
from itbench.kube.admission.write import Write
from itbench.kube.client import Obj
from itbench.kube.quantity import format_quantity, parse_quantity
from itbench.kube.status import about

_ANNOTATION = "kubernetes.io/limit-ranger"


def _rows(write: Write) -> list[Obj]:
    return [
        row
        for entry in write.store.list("limitranges", write.namespace)
        for row in (entry.object.get("spec") or {}).get("limits") or ()
    ]


def limit_defaults(write: Write) -> None:
    """Fill in what the namespace's LimitRanges say."""
    if not write.new_pod() and not write.resized_pod():
        return
    default: dict[str, str] = {}
    request: dict[str, str] = {}
    for row in _rows(write):
        if row.get("type") == "Container":
            default.update(row.get("default") or {})
            request.update(row.get("defaultRequest") or {})
    if not default and not request:
        return
    spec = write.object["spec"]
    notes = [
        note
        for key, title in (("containers", "container"), ("initContainers", "init container"))
        for container in spec.get(key) or ()
        for note in _fill(container, title, request, default)
    ]
    if notes:
        annotations = write.object["metadata"].setdefault("annotations", {})
        annotations[_ANNOTATION] = "LimitRanger plugin set: " + "; ".join(notes)


def _fill(container: Obj, title: str, request: dict[str, str], default: dict[str, str]) -> list[str]:
    resources = container.setdefault("resources", {})
    notes: list[str] = []
    for part, values in (("requests", request), ("limits", default)):
        added = [key for key in values if key not in (resources.get(part) or {})]
        if added:
            rows = resources.setdefault(part, {})
            for key in added:
                rows[key] = values[key]
            word = part.removesuffix("s")
            notes.append(f"{', '.join(sorted(added))} {word} for {title} {container['name']}")
    return notes


def _text(value: Fraction, unit: str) -> str:
    return format_quantity(value, binary=unit == "memory")


def _bounds(row: Obj, resources: Obj, errors: list[str]) -> None:
    kind = row.get("type")
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, bound in sorted((row.get("min") or {}).items()):
        low, asked, limit = parse_quantity(bound), requests.get(name), limits.get(name)
        if asked is None:
            errors.append(f"minimum {name} usage per {kind} is {bound}.  No request is specified")
        elif parse_quantity(asked) < low:
            errors.append(f"minimum {name} usage per {kind} is {bound}, but request is {asked}")
        elif limit is not None and parse_quantity(limit) < low:
            errors.append(f"minimum {name} usage per {kind} is {bound}, but limit is {limit}")
    for name, bound in sorted((row.get("max") or {}).items()):
        high, asked, limit = parse_quantity(bound), requests.get(name), limits.get(name)
        if limit is None:
            errors.append(f"maximum {name} usage per {kind} is {bound}.  No limit is specified")
        elif parse_quantity(limit) > high:
            errors.append(f"maximum {name} usage per {kind} is {bound}, but limit is {limit}")
        elif asked is not None and parse_quantity(asked) > high:
            errors.append(f"maximum {name} usage per {kind} is {bound}, but request is {asked}")
    for name, bound in sorted((row.get("maxLimitRequestRatio") or {}).items()):
        _ratio(kind, name, bound, requests.get(name), limits.get(name), errors)


def _ratio(kind: object, name: str, bound: str, asked: str | None, limit: str | None, errors: list[str]) -> None:
    text = f"{name} max limit to request ratio per {kind} is {bound}"
    if asked is None or parse_quantity(asked) == 0:
        errors.append(f"{text}, but no request is specified or request is 0")
    elif limit is None or parse_quantity(limit) == 0:
        errors.append(f"{text}, but no limit is specified or limit is 0")
    elif parse_quantity(limit) / parse_quantity(asked) > parse_quantity(bound):
        ratio = float(parse_quantity(limit) / parse_quantity(asked))
        errors.append(f"{text}, but provided ratio is {ratio:.6f}")


def pod_total(spec: Obj, part: str) -> dict[str, Fraction]:
    """Requests or limits of a whole pod: containers and sidecars added up, but at least the largest init container."""
    total: dict[str, Fraction] = {}
    for container in spec.get("containers") or ():
        for name, text in ((container.get("resources") or {}).get(part) or {}).items():
            total[name] = total.get(name, Fraction(0)) + parse_quantity(text)
    sidecars: dict[str, Fraction] = {}
    peak: dict[str, Fraction] = {}
    for container in spec.get("initContainers") or ():
        own = {key: parse_quantity(text) for key, text in ((container.get("resources") or {}).get(part) or {}).items()}
        if container.get("restartPolicy") == "Always":
            for name, value in own.items():
                total[name] = total.get(name, Fraction(0)) + value
                sidecars[name] = sidecars.get(name, Fraction(0)) + value
            own = {}
        for name in own.keys() | sidecars.keys():
            peak[name] = max(peak.get(name, Fraction(0)), own.get(name, Fraction(0)) + sidecars.get(name, Fraction(0)))
    for name, value in peak.items():
        total[name] = max(total.get(name, Fraction(0)), value)
    for name, text in ((spec.get("overhead") or {}) if part == "requests" else {}).items():
        total[name] = total.get(name, Fraction(0)) + parse_quantity(text)
    return total


def limit_bounds(write: Write) -> None:
    """Refuse what is outside the namespace's LimitRanges."""
    claim = write.key == "persistentvolumeclaims" and not write.subresource and write.operation in ("CREATE", "UPDATE")
    if not write.new_pod() and not write.resized_pod() and not claim:
        return
    errors: list[str] = []
    for row in _rows(write):
        kind = row.get("type")
        if claim and kind == "PersistentVolumeClaim":
            _claim_bounds(row, write.object["spec"], errors)
        elif not claim and kind == "Container":
            spec = write.object["spec"]
            for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
                _bounds(row, container.get("resources") or {}, errors)
        elif not claim and kind == "Pod":
            parts = {
                part: {name: _text(value, name) for name, value in pod_total(write.object["spec"], part).items()}
                for part in ("requests", "limits")
            }
            _bounds(row, parts, errors)
    if errors:
        text = errors[0] if len(errors) == 1 else "[" + ", ".join(errors) + "]"
        message = f'{write.resource.name} "{write.name}" is forbidden: {text}'
        raise status.failure(403, "Forbidden", message, about(write.resource, write.name))


def _claim_bounds(row: Obj, spec: Obj, errors: list[str]) -> None:
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    low, high = (row.get("min") or {}).get("storage"), (row.get("max") or {}).get("storage")
    if asked is None:
        return
    if low is not None and parse_quantity(asked) < parse_quantity(low):
        errors.append(f"minimum storage usage per PersistentVolumeClaim is {low}, but request is {asked}")
    if high is not None and parse_quantity(asked) > parse_quantity(high):
        errors.append(f"maximum storage usage per PersistentVolumeClaim is {high}, but request is {asked}")
