"""Extract discovery and schemas of one real API server into the package data of `itbench.kube`.

Run by a developer when the served Kubernetes version changes, never by the product:

    python scripts/gen_kube_tables.py KUBECONFIG [OUT]

Writes `discovery.json.xz` (aggregated discovery), `columns.json.xz` (what `kubectl get` shows), `schemas.json.xz`
(structure of every definition, without prose) and `descriptions.json.xz` (the prose, read only by `kubectl explain`).
"""

import json
import lzma
import ssl
import sys
import urllib.request
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Server:
    """A GET-only client of the server that a kubeconfig with a client certificate names."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = cluster["server"]
        self.tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self.tls.load_cert_chain(user["client-certificate"], user["client-key"])

    def get(self, path: str, accept: str = "application/json") -> Any:
        """The JSON document at a path."""
        request = urllib.request.Request(self.url + path, headers={"Accept": accept})
        with urllib.request.urlopen(request, context=self.tls) as answer:
            return json.load(answer)


def discovery(server: Server) -> list[Json]:
    """Groups in the server's order, the core group first."""
    items: list[Json] = []
    for path in ("/api", "/apis"):
        items += server.get(path, DISCOVERY)["items"]
    for item in items:
        item["metadata"] = {key: value for key, value in item["metadata"].items() if key == "name"}
    return items


def definitions(server: Server) -> tuple[Json, Json, Json]:
    """All definitions by name, which of them each group-version's document lists, and the document's info block."""
    known: Json = {}
    documents: Json = {}
    info: Json = {}
    for path, row in server.get("/openapi/v3")["paths"].items():
        document = server.get(row["serverRelativeURL"])
        info = document["info"]
        schemas = document.get("components", {}).get("schemas", {})
        if not schemas:
            continue
        documents[path] = sorted(schemas)
        for name, schema in schemas.items():
            if known.setdefault(name, schema) != schema:
                raise SystemExit(f"definition differs between documents: {name}")
    return known, documents, info


def columns(server: Server, items: list[Json]) -> Json:
    """Column definitions of every listable resource, by `plural.group/version`."""
    found: Json = {}
    for item in items:
        group = item["metadata"].get("name", "")
        for version in item["versions"]:
            root = f"/apis/{group}/{version['version']}" if group else f"/api/{version['version']}"
            for row in version["resources"]:
                if "list" in row["verbs"]:
                    table = server.get(f"{root}/{row['resource']}?limit=1", TABLE)
                    name = f"{row['resource']}.{group}" if group else row["resource"]
                    found[f"{name}/{version['version']}"] = table["columnDefinitions"]
    return found


def split(schema: Json) -> tuple[Json, Json]:
    """A definition's structure, and its prose by property (`""` is the definition's own)."""
    prose: Json = {}
    bare = {key: value for key, value in schema.items() if key not in ("description", "properties")}
    if "description" in schema:
        prose[""] = schema["description"]
    if "properties" in schema:
        bare["properties"] = {}
    for name, part in schema.get("properties", {}).items():
        if "description" in part:
            prose[name] = part["description"]
        bare["properties"][name] = {key: value for key, value in part.items() if key != "description"}
    return bare, prose


def write(path: Path, data: Any) -> None:
    """Compressed compact JSON."""
    raw = json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()
    path.write_bytes(lzma.compress(raw, preset=9 | lzma.PRESET_EXTREME))
    print(f"{path}: {len(raw)} -> {path.stat().st_size} bytes")  # noqa: T201


def main() -> None:
    """Ask the server and write the files."""
    server = Server(Path(sys.argv[1]))
    out = Path(sys.argv[2] if len(sys.argv) > 2 else "itbench/kube/data")
    version = server.get("/version")["gitVersion"]
    known, documents, info = definitions(server)
    parts = {name: split(schema) for name, schema in sorted(known.items())}
    items = discovery(server)
    write(out / "discovery.json.xz", {"version": version, "items": items})
    write(out / "columns.json.xz", columns(server, items))
    structure = {name: part[0] for name, part in parts.items()}
    write(out / "schemas.json.xz", {"version": version, "info": info, "documents": documents, "definitions": structure})
    write(out / "descriptions.json.xz", {name: part[1] for name, part in parts.items()})


if __name__ == "__main__":
    main()
