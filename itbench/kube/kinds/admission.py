"""Webhook configurations: defaults and rules; and the parts that admission policies share with them (match rules)."""

from typing import Any
from urllib.parse import urlsplit

from itbench.kube.client import Obj
from itbench.kube.kinds.affinity import check_label_selector
from itbench.kube.kinds.base import Behaviour
from itbench.kube.kinds.check import Check
from itbench.kube.kinds.expressions import Expression, check_expression, outcomes, variables
from itbench.kube.names import label1035_errors, qualified_errors, subdomain_errors

FAILURES = ("Fail", "Ignore")
MATCHES = ("Equivalent", "Exact")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_EFFECTS = ("None", "NoneOnDryRun")
_VERSIONS = ("v1", "v1beta1")
_URL_FORM = "desired format: https://host[/path]"
_CONDITIONS = 64


def default_match(match: Obj) -> None:
    """Defaults of what selects requests."""
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for key in ("rules", "resourceRules", "excludeResourceRules"):
        for rule in match.get(key) or ():
            rule.setdefault("scope", "*")


def check_match(match: Obj, field: str, check: Check) -> None:
    """`matchConstraints` and `matchResources` of policies."""
    if match.get("matchPolicy") not in (None, *MATCHES):
        check.unsupported(f"{field}.matchPolicy", match["matchPolicy"], MATCHES)
    check_label_selector(match.get("namespaceSelector"), f"{field}.namespaceSelector", check)
    check_label_selector(match.get("objectSelector"), f"{field}.objectSelector", check)
    for key in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(key) or ()):
            check_rule(rule, f"{field}.{key}[{index}]", check)


def check_rule(rule: Obj, field: str, check: Check) -> None:
    """One rule: operations, groups, versions, resources, scope."""
    operations = rule.get("operations") or []
    if not operations:
        check.required(f"{field}.operations")
    if len(operations) > 1 and "*" in operations:
        check.invalid(f"{field}.operations", operations, "if '*' is present, must not specify other operations")
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            check.unsupported(f"{field}.operations[{index}]", operation, _OPERATIONS)
    for key, noun in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(key) or []
        if not values:
            check.required(f"{field}.{key}")
        if len(values) > 1 and "*" in values:
            check.invalid(f"{field}.{key}", values, f"if '*' is present, must not specify other {noun}")
        if key == "apiVersions" and "" in values:
            check.required(f"{field}.{key}[{values.index('')}]")
    _check_resources(rule.get("resources") or [], f"{field}.resources", check)
    _check_names(rule.get("resourceNames") or [], f"{field}.resourceNames", check)
    if rule.get("scope") not in (None, *_SCOPES):
        check.unsupported(f"{field}.scope", rule["scope"], _SCOPES)


def _check_resources(resources: list[str], field: str, check: Check) -> None:
    if not resources:
        check.required(field)
    if len(resources) > 1 and "*/*" in resources:
        check.invalid(field, resources, "if '*/*' is present, must not specify other resources")
    if len(resources) > 1 and "*" in resources and any("/" not in row for row in resources if row != "*"):
        text = "if '*' is present, must not specify other resources without subresources"
        check.invalid(field, resources, text)
    for index, resource in enumerate(resources):
        if resource == "":
            check.required(f"{field}[{index}]")
        name, slash, _ = resource.partition("/")
        if slash and name != "*" and f"{name}/*" in resources and resource != f"{name}/*":
            check.invalid(f"{field}[{index}]", resource, f"if '{name}/*' is present, must not specify {resource}")


def _check_names(names: list[str], field: str, check: Check) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            check.duplicate(f"{field}[{index}]", name)


def check_conditions(rows: list[Obj], field: str, check: Check, known: dict[str, str], empty: str = "") -> None:
    """`matchConditions`: names and boolean expressions."""
    if len(rows) > _CONDITIONS:
        check.causes.append(_too_many(field, len(rows)))
    texts = [
        Expression(f"{field}[{index}].expression", row.get("expression", ""), missing=empty)
        for index, row in enumerate(rows)
    ]
    found = outcomes(texts, known)[1] if texts else []
    for index, (row, text, outcome) in enumerate(zip(rows, texts, found, strict=True)):
        check_expression(text, outcome, check)
        where, name = f"{field}[{index}].name", row.get("name", "")
        if not name:
            check.required(where)
        elif any(other.get("name") == name for other in rows[:index]):
            check.duplicate(where, name)
        else:
            check.all_invalid(where, name, qualified_errors(name))


def _too_many(field: str, count: int) -> Any:
    from itbench.kube.status import Cause

    return Cause("FieldValueTooMany", field, f"Too many: {count}: must have at most {_CONDITIONS} items")


# -- webhooks ----------------------------------------------------------------------------------------------------------------


def _default_webhooks(obj: Obj) -> None:
    for hook in obj.get("webhooks") or ():
        hook.setdefault("failurePolicy", "Fail")
        hook.setdefault("timeoutSeconds", 10)
        default_match(hook)
        service = (hook.get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)


def _default_mutating(obj: Obj) -> None:
    _default_webhooks(obj)
    for hook in obj.get("webhooks") or ():
        hook.setdefault("reinvocationPolicy", "Never")


def _check_webhooks(obj: Obj, check: Check) -> None:
    names: list[str] = []
    for index, hook in enumerate(obj.get("webhooks") or ()):
        field = f"webhooks[{index}]"
        _check_webhook(hook, field, check)
        if hook.get("name") in names:
            check.duplicate(f"{field}.name", hook["name"])
        names.append(hook.get("name", ""))
    for index, hook in enumerate(obj.get("webhooks") or ()):
        _check_versions(hook.get("admissionReviewVersions") or [], f"webhooks[{index}].admissionReviewVersions", check)


def _check_webhook(hook: Obj, field: str, check: Check) -> None:
    name = hook.get("name", "")
    if not name:
        check.required(f"{field}.name")
    elif errors := subdomain_errors(name):
        check.all_invalid(f"{field}.name", name, errors)
    elif name.count(".") < 2:
        text = "should be a domain with at least three segments separated by dots"
        check.invalid(f"{field}.name", name, text)
    for index, rule in enumerate(hook.get("rules") or ()):
        check_rule(rule, f"{field}.rules[{index}]", check)
    for key, options in (("failurePolicy", FAILURES), ("matchPolicy", MATCHES)):
        if hook.get(key) not in (None, *options):
            check.unsupported(f"{field}.{key}", hook[key], options)
    effects = hook.get("sideEffects")
    if not effects:
        check.required(f"{field}.sideEffects", f"must specify one of {', '.join(_EFFECTS)}")
    elif effects not in _EFFECTS:
        check.unsupported(f"{field}.sideEffects", effects, _EFFECTS)
    if not 1 <= hook.get("timeoutSeconds", 10) <= 30:
        text = "the timeout value must be between 1 and 30 seconds"
        check.invalid(f"{field}.timeoutSeconds", hook["timeoutSeconds"], text)
    check_label_selector(hook.get("namespaceSelector"), f"{field}.namespaceSelector", check)
    check_label_selector(hook.get("objectSelector"), f"{field}.objectSelector", check)
    if hook.get("reinvocationPolicy") not in (None, "Never", "IfNeeded"):
        check.unsupported(f"{field}.reinvocationPolicy", hook["reinvocationPolicy"], ("IfNeeded", "Never"))
    check_client(hook.get("clientConfig") or {}, f"{field}.clientConfig", check)
    check_conditions(hook.get("matchConditions") or [], f"{field}.matchConditions", check, variables())


def check_client(config: Obj, field: str, check: Check) -> None:
    """Where a webhook is: a Service or a URL (also of CRD conversion and API services)."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        check.required(field, "exactly one of url or service is required")
    elif url is not None:
        _check_url(url, f"{field}.url", check)
    elif service is not None:
        _check_service(service, f"{field}.service", check)


def _check_url(url: str, field: str, check: Check) -> None:
    parts = urlsplit(url)
    if not parts.scheme and url.startswith(":"):
        text = f'url must be a valid URL: parse "{url}": missing protocol scheme; {_URL_FORM}'
        check.required(field, text)
        return
    if parts.scheme != "https":
        check.invalid(field, parts.scheme, f"'https' is the only allowed URL scheme; {_URL_FORM}")
    if not parts.netloc:
        check.invalid(field, parts.netloc, f"host must be specified; {_URL_FORM}")
    if "@" in parts.netloc:
        user = parts.netloc.rpartition("@")[0]
        check.invalid(field, user, "user information is not permitted in the URL")
    if parts.fragment:
        check.invalid(field, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        check.invalid(field, parts.query, "query parameters are not permitted in the URL")


def _check_service(service: Obj, field: str, check: Check) -> None:
    for key in ("name", "namespace"):
        if not service.get(key):
            check.required(f"{field}.{key}")
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        check.invalid(f"{field}.port", port, "port is not valid: must be between 1 and 65535, inclusive")
    path = service.get("path")
    if path is None or path in ("", "/"):
        return
    if not path.startswith("/"):
        check.invalid(f"{field}.path", path, "must start with a '/'")
    for index, step in enumerate(path[1:].rstrip("/").split("/") if path.startswith("/") else path[1:].split("/")):
        if not step:
            check.invalid(f"{field}.path", path, f"segment[{index}] may not be empty")
        else:
            check.all_invalid(f"{field}.path", path, (f"segment[{index}]: {line}" for line in subdomain_errors(step)))


def _check_versions(versions: list[str], field: str, check: Check) -> None:
    if not versions:
        check.required(field, f"must specify one of {', '.join(_VERSIONS)}")
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            check.invalid(f"{field}[{index}]", version, "duplicate version")
        elif errors := label1035_errors(version):
            check.all_invalid(f"{field}[{index}]", version, errors)
        seen.add(version)
    if not seen & set(_VERSIONS):
        check.invalid(field, versions, f"must include at least one of {', '.join(_VERSIONS)}")


VALIDATING = Behaviour(default=_default_webhooks, validate=_check_webhooks, generation=True)
MUTATING = Behaviour(default=_default_mutating, validate=_check_webhooks, generation=True)
