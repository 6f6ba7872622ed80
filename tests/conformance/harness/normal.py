"""Takes out of an answer what differs from one run to the next: identities, times, addresses, drawn names.

Where values are drawn but their sameness tells something (addresses, ports, uids), each distinct value gets a numbered name.
Columns keep their exact widths, unless a value whose own width varies was taken out of the text.
"""

import base64
import json
import re
from dataclasses import dataclass, field
from typing import Any

_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_TOKEN = r"\beyJ[\w-]+\.eyJ[\w-]+\.[\w-]+"
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NUMBERED: tuple[tuple[str, str], ...] = (
    (r"\b10\.\d+\.\d+\.\d+\b(?!:\d|/)", "IP"),
    (r"\b3[0-2]\d{3}\b(?!\.)", "PORT"),
)
_FIXED: tuple[tuple[str, str], ...] = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "TIME"),
    (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r"\b[EWI]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ", "LOG "),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000", "TIME"),
    (r"X509SHA256=[0-9a-f]+", "CREDENTIAL"),
    (r"-----BEGIN CERTIFICATE-----[\w\s+/=]+-----END CERTIFICATE-----", "CERTIFICATE"),
    (r"/tmp/[\w/.-]+", "FILE"),
    (r"too old resource version: \d+ \(\d+\)", "too old resource version"),
    (r"\b\d+(\.\d+)?m?s ago\b", "AGO"),
    (r"\A\d+s\Z", "AGE"),
)
_VARYING: tuple[tuple[str, str], ...] = (
    (r'("?resourceVersion"?: "?)\d+', r"\1RV"),
    (r"(Resource ?[Vv]ersion: +)\d+", r"\1RV"),
    (r'(resourceVersion\\?"?: ?\\?[\'"]?)\d+', r"\1RV"),
    (r"(in record \()\d+(?=\))", r"\1RV"),
    (r"(resource version: \d+, current: )\d+", r"\1RV"),
    (r"\b10\.\d+\.\d+\.\d+:\d+", "SERVER"),
    (r"https?://127\.0\.0\.1:(?!1/)\d+", "SERVER"),
    (r"\b127\.0\.0\.1:(?!1\b)\d+", "SERVER"),
    (rf"-[{_SAFE}]{{8,10}}-[{_SAFE}]{{5}}\b(?!-)", "-HASH-RAND"),
    (rf"-[{_SAFE}]{{8,10}}\b", "-HASH"),
    (rf"(hash\"?[=:] ?\"?)[{_SAFE}]{{6,10}}\b", r"\1HASH"),
    (rf"-[{_SAFE}]{{5}}\b", "-RAND"),
    (r"(?<=  )(\d+d)?(\d+h)?(\d+m)?\d+s\b|(?<=  )\d+m\b(?!\w)", "AGE"),
    (r"(AGE|\b\d+s) \(x\d+ over \d+m?\d*s?\)", "AGE"),
    (r"\(x\d+ over \w+\)", "(xN)"),
)
_DRAWN = {
    "continue",
    "pod-template-hash",
    "gitCommit",
    "goVersion",
    "resourceVersion",
    "creationTimestamp",
    "selfLink",
}
_UNORDERED = {"resourceRules", "nonResourceRules"}
"""Lists that the real server makes in the order of a Go map."""


def _compiled(rules: tuple[tuple[str, str], ...]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern), new) for pattern, new in rules)


_NUMBERED_RULES, _FIXED_RULES, _VARYING_RULES = _compiled(_NUMBERED), _compiled(_FIXED), _compiled(_VARYING)


@dataclass(frozen=True)
class Known:
    """Numbered names of drawn values: addresses and ports for a topic, uids for one answer."""

    names: dict[str, str] = field(default_factory=dict)

    def name(self, kind: str, value: str) -> str:
        """The name of a value, such as `IP2`."""
        number = sum(name.rstrip("0123456789") == kind for name in self.names.values()) + 1
        return self.names.setdefault(value, f"{kind}{number}")

    def answer(self) -> "Known":
        """A copy for one answer: uids begin anew."""
        return Known({value: name for value, name in self.names.items() if not name.startswith("UID")})


def text(value: str, known: Known, *, sort: bool = False) -> str:
    """Output of a program without what is drawn or timed; `sort` is for lines in no order, whose values get no numbers."""
    value = re.sub(_TOKEN, lambda found: json.dumps(_claims(found[0], known), sort_keys=True), value)
    value = _UID.sub(lambda found: "UID" if sort else known.name("UID", found[0]), value)
    for pattern, new in _FIXED_RULES:
        value = pattern.sub(new, value)
    before = value
    for pattern, new in _VARYING_RULES:
        value = pattern.sub(new, value)
    varies = value != before
    for pattern, kind in _NUMBERED_RULES:
        varies = varies or (kind == "IP" and pattern.search(value) is not None)
        value = pattern.sub(lambda found, kind=kind: kind if sort else known.name(kind, found[0]), value)
    if varies:
        value = re.sub(r"(?<=\S)[ \t]{2,}", "  ", value)
    value = re.sub(r"[ \t]+\n", "\n", value)
    if sort:
        value = "\n".join(sorted(value.splitlines()))
    return value.strip("\n")


def _claims(token: str, known: Known) -> Any:
    """What a JSON web token says, its times as the seconds it is valid for."""
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    claims["exp"] -= claims["iat"]
    claims["nbf"] -= claims.pop("iat")
    return document(claims, known)


def document(value: Any, known: Known, *, managed: bool = False) -> Any:
    """A JSON answer, managed fields only where they are asked for."""
    if isinstance(value, dict):
        kept = {
            key: document(item, known, managed=managed)
            for key, item in value.items()
            if managed or key != "managedFields"
        }
        for key in _UNORDERED & set(kept):
            kept[key] = sorted(kept[key], key=lambda rule: json.dumps(rule, sort_keys=True))
        for key in {"nodePort", "healthCheckNodePort"} & set(kept):
            kept[key] = known.name("PORT", str(kept[key])) if kept[key] else kept[key]
        return {key: "DRAWN" if key in _DRAWN and item else item for key, item in kept.items()}
    if isinstance(value, list):
        return [document(item, known, managed=managed) for item in value]
    return text(value, known) if isinstance(value, str) else value
