"""Takes out of an answer what differs from one run to the next: identities, times, addresses, drawn names."""

import json
import re
from typing import Any

_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_RULES: tuple[tuple[str, str], ...] = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "TIME"),
    (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r"\b[EWI]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ", "LOG "),
    (r'("?resourceVersion"?: "?)\d+', r"\1RV"),
    (r"(Resource ?[Vv]ersion: +)\d+", r"\1RV"),
    (r'(resourceVersion\\?"?: ?\\?"?)\d+', r"\1RV"),
    (r"(in record \()\d+", r"\1RV"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000", "TIME"),
    (r"\b10\.\d+\.\d+\.\d+:\d+", "SERVER"),
    (r"X509SHA256=[0-9a-f]+", "CREDENTIAL"),
    (r"https?://127\.0\.0\.1:\d+", "SERVER"),
    (r"\b127\.0\.0\.1:\d+", "SERVER"),
    (r"\b10\.\d+\.\d+\.\d+\b", "IP"),
    (r"\b3[0-2]\d{3}\b", "PORT"),
    (r"/tmp/[\w/.-]+", "FILE"),
    (rf"-[{_SAFE}]{{8,10}}-[{_SAFE}]{{5}}\b(?!-)", "-HASH-RAND"),
    (rf"-[{_SAFE}]{{8,10}}\b", "-HASH"),
    (rf"(hash\"?[=:] ?\"?)[{_SAFE}]{{6,10}}\b", r"\1HASH"),
    (rf"-[{_SAFE}]{{5}}\b", "-RAND"),
    (r"(?<=  )(\d+d)?(\d+h)?(\d+m)?\d+s\b|(?<=  )\d+m\b(?!\w)", "AGE"),
    (r"(AGE|\b\d+s) \(x\d+ over \d+m?\d*s?\)", "AGE"),
    (r"\b\d+(\.\d+)?m?s ago\b", "AGO"),
    (r"\(x\d+ over \w+\)", "(xN)"),
    (r"\A\d+s\Z", "AGE"),
    (r"too old resource version: \d+ \(\d+\)", "too old resource version"),
    (r"(?<=\S)[ \t]{2,}", "  "),
    (r"[ \t]+\n", "\n"),
)
_COMPILED = tuple((re.compile(pattern), new) for pattern, new in _RULES)
_DRAWN = {
    "continue",
    "nodePort",
    "healthCheckNodePort",
    "pod-template-hash",
    "gitCommit",
    "goVersion",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "selfLink",
}


def text(value: str, *, sort: bool = False) -> str:
    """Output of a program without what is drawn or timed."""
    for pattern, new in _COMPILED:
        value = pattern.sub(new, value)
    if sort:
        value = "\n".join(sorted(value.splitlines()))
    return value.strip("\n")


def document(value: Any, *, managed: bool = False) -> Any:
    """A JSON answer, with causes in a fixed order and managed fields only where they are asked for."""
    if isinstance(value, dict):
        kept = {
            key: document(item, managed=managed) for key, item in value.items() if managed or key != "managedFields"
        }
        if isinstance(kept.get("causes"), list):
            kept["causes"].sort(key=lambda cause: json.dumps(cause, sort_keys=True))
        return {key: "DRAWN" if key in _DRAWN and item else item for key, item in kept.items()}
    if isinstance(value, list):
        return [document(item, managed=managed) for item in value]
    return text(value) if isinstance(value, str) else value
