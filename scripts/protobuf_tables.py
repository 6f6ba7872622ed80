"""Generate `itbench/kube/data/protobuf.json.gz`: the field tables by which protobuf request bodies are decoded.

Source: the public Go modules k8s.io/{api,apimachinery,apiextensions-apiserver,kube-aggregator,metrics} (Apache-2.0).
Field numbers, names and types come from `generated.proto`, what Go leaves out of JSON from the struct tags beside it.

    for m in api apimachinery apiextensions-apiserver kube-aggregator metrics; do go mod download k8s.io/$m@v0.34.1; done
    python scripts/protobuf_tables.py ~/go/pkg/mod/k8s.io itbench/kube/data/protobuf.json.gz
"""

import gzip
import json
import re
import sys
from pathlib import Path

FIELD = re.compile(r"^\s*(optional|repeated|required)?\s*(map<\s*(\S+?)\s*,\s*(\S+?)\s*>|\S+)\s+(\w+)\s*=\s*(\d+)")
MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.M | re.S)
STRUCT = re.compile(r"^type (\w+) struct \{(.*?)^\}", re.M | re.S)
LIST = re.compile(r"^type (\w+) \[\](\w+)", re.M)
GROUP = re.compile(r'^const GroupName = "([^"]*)"', re.M)
TAGGED = re.compile(r'^\s*(?:\w+\s+)?(\*?)\S+\s+`.*?protobuf:"\w+,(\d+),', re.M)
SCALARS = {"string", "bytes", "bool", "int32", "int64", "uint32", "uint64", "double", "float"}


def prefix_of(name: str) -> str:
    """Message names without the common prefix."""
    return name.lstrip(".").removeprefix("k8s.io.")


def type_of(token: str, package: str) -> str:
    """A scalar as it is, a message by its full name."""
    if token in SCALARS:
        return token
    return prefix_of(token) if token.startswith(".") else f"{package}.{token}"


def go_flags(text: str) -> tuple[dict[str, dict[int, tuple[str, str]]], set[str]]:
    """Per struct and field number: JSON name, flags `p` pointer, `r` always written, `i` inline; and the list types."""
    flags: dict[str, dict[int, tuple[str, str]]] = {}
    for name, body in STRUCT.findall(text):
        fields: dict[int, tuple[str, str]] = {}
        for line in body.splitlines():
            match = TAGGED.match(line)
            if not match:
                continue
            tag = re.search(r'json:"([^"]*)"', line)
            options = (tag.group(1) if tag else "").split(",")
            fields[int(match.group(2))] = (
                options[0],
                (
                    ("p" if match.group(1) else "")
                    + ("i" if "inline" in options else "")
                    + ("" if "omitempty" in options or "omitzero" in options or "inline" in options else "r")
                ),
            )
        flags[name] = fields
    return flags, {name for name, _ in LIST.findall(text)}


def read_package(folder: Path, root: Path) -> tuple[str, dict[str, dict[str, list[str]]], str]:
    """One Go package: proto name, its messages, its API group ('' in core, '-' when it has none)."""
    proto = (folder / "generated.proto").read_text()
    package = prefix_of(re.search(r"^package (\S+);", proto, re.M).group(1))  # type: ignore[union-attr]
    source = "\n".join(
        p.read_text() for p in sorted(folder.glob("*.go")) if not p.name.startswith(("generated", "zz_"))
    )
    flags, lists = go_flags(source)
    messages: dict[str, dict[str, list[str]]] = {}
    for name, body in MESSAGE.findall(proto):
        fields: dict[str, list[str]] = {}
        for line in body.splitlines():
            match = FIELD.match(line)
            if not match or line.strip().startswith("//"):
                continue
            label, token, _, value, field, number = match.groups()
            kind = type_of(value or token, package)
            json_name, flag = flags.get(name, {}).get(int(number), ("", ""))
            flag += "m" if value else "l" if label == "repeated" else ""
            fields[number] = [json_name or field, kind, flag]
        messages[f"{package}.{name}"] = {"": ["", "", "l"]} | fields if name in lists else fields
    group = GROUP.search(source)
    return package, messages, group.group(1) if group else "-"


def main(root: Path, target: Path) -> None:
    """Read all packages below `root`, write one compressed table."""
    messages: dict[str, dict[str, list[str]]] = {}
    groups: dict[str, str] = {}
    for proto in sorted(root.glob("*@v0.34.1/**/generated.proto")):
        package, found, group = read_package(proto.parent, root)
        messages |= found
        version = package.rsplit(".", 1)[-1]
        if group != "-" and re.fullmatch(r"v\d\w*", version):
            groups[f"{group}/{version}".lstrip("/")] = package
    data = json.dumps({"groups": groups, "messages": messages}, separators=(",", ":"), sort_keys=True).encode()
    target.write_bytes(gzip.compress(data, 9, mtime=0))
    sys.stdout.write(f"{len(messages)} messages, {len(groups)} group versions, {target.stat().st_size} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).expanduser(), Path(sys.argv[2]))
