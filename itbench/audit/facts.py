"""What was collected of an estate: a sheet per list, complete or with the reason why not.

Kept as files, read back for verdicts.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from itbench.core.errors import UsageError

FOLDER = "facts"
MANIFEST = "manifest.json"

Obj = dict[str, Any]


@dataclass(frozen=True)
class Sheet:
    """The answer to one list request.

    Args:
        request: what was asked, as a person would repeat it.
        error: why the list is missing or partial; empty when it is complete.
        collected_at: RFC 3339.
    """

    resource: str
    request: str
    collected_at: str
    identity: str
    estate: str
    items: tuple[Obj, ...] = ()
    error: str = ""

    @property
    def path(self) -> str:
        """Its file, relative to the folder of the audit."""
        return f"{FOLDER}/{self.resource}.json"

    def data(self) -> bytes:
        """Canonical JSON."""
        return canonical({**self.__dict__, "items": list(self.items), "complete": not self.error})

    @property
    def sha256(self) -> str:
        """Of its file."""
        return hashlib.sha256(self.data()).hexdigest()


@dataclass(frozen=True)
class Facts:
    """All sheets of one estate; `estate` is its fingerprint, `about` what is known of it in words."""

    estate: str
    started: str
    ended: str
    about: Mapping[str, str] = field(default_factory=dict)
    sheets: tuple[Sheet, ...] = ()

    def sheet(self, resource: str) -> Sheet | None:
        """The sheet of a resource, if it was asked for."""
        return next((sheet for sheet in self.sheets if sheet.resource == resource), None)

    def gaps(self, resources: Iterable[str]) -> list[str]:
        """Why some of these lists are not complete."""
        found = []
        for resource in resources:
            sheet = self.sheet(resource)
            if sheet is None:
                found.append(f"{resource}: not collected")
            elif sheet.error:
                found.append(f"{resource}: {sheet.error}")
        return found

    def objects(self) -> dict[str, list[Obj]]:
        """Objects by resource, of complete and of partial lists."""
        return {sheet.resource: list(sheet.items) for sheet in self.sheets}


def canonical(value: Any) -> bytes:
    """JSON that is equal for equal values."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, indent=1).encode() + b"\n"


def write(facts: Facts, folder: Path, profile: Mapping[str, str]) -> None:
    """Write every sheet, and a manifest with their hashes and the profile's."""
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    files = {}
    for sheet in facts.sheets:
        (folder / sheet.path).write_bytes(sheet.data())
        files[sheet.path] = sheet.sha256
    head = {"estate": facts.estate, "started": facts.started, "ended": facts.ended, "about": dict(facts.about)}
    (folder / MANIFEST).write_bytes(canonical({**head, "profile": dict(profile), "files": files}))


def read(folder: Path) -> tuple[Facts, dict[str, str]]:
    """Facts that `write` wrote, and the profile they were collected for.

    Raises:
        UsageError: no such folder, or a file that is not as the manifest says.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(
            "no collected facts here", seen=str(folder), expected=f"a folder with {MANIFEST} ({error})"
        ) from error
    sheets = tuple(_sheet(folder, path, digest) for path, digest in sorted(manifest["files"].items()))
    head = {key: manifest[key] for key in ("estate", "started", "ended", "about")}
    return Facts(**head, sheets=sheets), manifest["profile"]


def _sheet(folder: Path, path: str, digest: str) -> Sheet:
    file = folder / path
    data = file.read_bytes() if file.is_file() else b""
    seen = hashlib.sha256(data).hexdigest()
    if seen != digest or not path.startswith(f"{FOLDER}/"):
        raise UsageError(
            f"evidence was changed or is missing: {path}", seen=seen[:16], expected=f"SHA-256 {digest[:16]}"
        )
    content = json.loads(data)
    content.pop("complete")
    return Sheet(**{**content, "items": tuple(content["items"])})
