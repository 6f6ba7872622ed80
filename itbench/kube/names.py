"""Rules for names, labels, annotations and other identifiers, with the texts of the real server.

Each `*_errors` function returns what is wrong with a text, nothing when it is right. Called by validation.
"""

import re
from collections.abc import Mapping

_LABEL_FORM = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORM = rf"{_LABEL_FORM}(\.{_LABEL_FORM})*"
_LABEL1035_FORM = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED_FORM = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_FORM = f"({_QUALIFIED_FORM})?"

_LABEL = re.compile(_LABEL_FORM)
_SUBDOMAIN = re.compile(_SUBDOMAIN_FORM)
_LABEL1035 = re.compile(_LABEL1035_FORM)
_QUALIFIED = re.compile(_QUALIFIED_FORM)
_VALUE = re.compile(_VALUE_FORM)

_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
    f"with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN_FORM}')"
).replace(r"\.", r"\.")
_WILDCARD_TEXT = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case "
    "alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for "
    rf"validation is '\*\.{_SUBDOMAIN_FORM}')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    f"alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL_FORM}')"
)
_LABEL1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end "
    f"with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '{_LABEL1035_FORM}')"
)
_QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED_FORM}')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
    f"an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE_FORM}')"
)


def too_long(limit: int) -> str:
    """The text for a text longer than `limit` bytes."""
    return f"must be no more than {limit} characters"


def subdomain_errors(text: str) -> list[str]:
    """RFC 1123 subdomain: most object names."""
    errors = [too_long(253)] if len(text) > 253 else []
    return errors if _SUBDOMAIN.fullmatch(text) else [*errors, _SUBDOMAIN_TEXT]


def wildcard_errors(text: str) -> list[str]:
    """A host of an Ingress that begins with `*`."""
    whole = text.startswith("*.") and _SUBDOMAIN.fullmatch(text[2:])
    return ([too_long(253)] if len(text) > 253 else []) + ([] if whole else [_WILDCARD_TEXT])


def label_errors(text: str) -> list[str]:
    """RFC 1123 label: containers, namespaces, volumes."""
    errors = [too_long(63)] if len(text) > 63 else []
    if _LABEL.fullmatch(text):
        return errors
    return [*errors, "must not contain dots" if _SUBDOMAIN.fullmatch(text) else _LABEL_TEXT]


def label1035_errors(text: str) -> list[str]:
    """RFC 1035 label: Services."""
    errors = [too_long(63)] if len(text) > 63 else []
    return errors if _LABEL1035.fullmatch(text) else [*errors, _LABEL1035_TEXT]


def path_segment_errors(text: str) -> list[str]:
    """Names of RBAC objects: anything that is one segment of a path."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{mark}'" for mark in "/%" if mark in text]


def qualified_errors(text: str) -> list[str]:
    """Label and annotation keys: `[prefix/]name`."""
    parts = text.split("/")
    name = parts[-1]
    errors: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            errors.append("prefix part must be non-empty")
        errors += ["prefix part " + line for line in (subdomain_errors(parts[0]) if parts[0] else ())]
    elif len(parts) > 2:
        return [
            f"a qualified name {_QUALIFIED_TEXT.removeprefix('name part ')} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    if not name:
        errors.append("name part must be non-empty")
    elif len(name) > 63:
        errors.append("name part " + too_long(63))
    if not _QUALIFIED.fullmatch(name):
        errors.append(_QUALIFIED_TEXT)
    return errors


def label_value_errors(text: str) -> list[str]:
    """Label values."""
    errors = [too_long(63)] if len(text) > 63 else []
    return errors if _VALUE.fullmatch(text) else [*errors, _VALUE_TEXT]


def port_name_errors(text: str) -> list[str]:
    """IANA service names: names of container ports."""
    errors: list[str] = []
    if len(text) > 15:
        errors.append(too_long(15))
    if not re.fullmatch(r"[-a-z0-9]+", text):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", text):
        errors.append("must contain at least one letter (a-z)")
    if "--" in text:
        errors.append("must not contain consecutive hyphens")
    if text[:1] == "-" or text[-1:] == "-":
        errors.append("must not begin or end with a hyphen")
    return errors


def env_name_errors(text: str) -> list[str]:
    """Names of environment variables."""
    if text and all(" " <= mark <= "~" and mark != "=" for mark in text):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def config_key_errors(text: str) -> list[str]:
    """Keys of ConfigMaps and Secrets."""
    errors = [too_long(253)] if len(text) > 253 else []
    if not re.fullmatch(r"[-._a-zA-Z0-9]+", text):
        errors.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
            "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        )
    if text == ".":
        errors.append("must not be '.'")
    if text == "..":
        errors.append("must not be '..'")
    elif text.startswith(".."):
        errors.append("must not start with '..'")
    return errors


def labels_errors(labels: Mapping[str, str]) -> list[tuple[str, str]]:
    """All faults of a label map: (offending key or value, text)."""
    found: list[tuple[str, str]] = []
    for key, value in labels.items():
        found += [(key, text) for text in qualified_errors(key)]
        found += [(value, text) for text in label_value_errors(value)]
    return found
