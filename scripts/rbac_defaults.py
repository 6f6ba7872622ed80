"""Generate `itbench/kube/data/rbac.json.gz`: the roles and bindings that a fresh Kubernetes 1.34 cluster has.

kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o json |
    python scripts/rbac_defaults.py itbench/kube/data/rbac.json.gz
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any


def plain(item: dict[str, Any]) -> dict[str, Any]:
    """The object as an administrator would write it: no server-set metadata, no aggregated rules."""
    meta = {k: item["metadata"][k] for k in ("name", "namespace", "labels", "annotations") if k in item["metadata"]}
    result = {k: v for k, v in item.items() if k not in ("metadata", "rules")} | {"metadata": meta}
    if "rules" in item:
        result["rules"] = [] if "aggregationRule" in item else item["rules"] or []
    return result


def main(target: Path) -> None:
    """Read a List from standard input, write the compressed defaults."""
    items = [plain(i) for i in json.load(sys.stdin)["items"] if "rbac-defaults" in str(i["metadata"].get("labels"))]
    data = json.dumps(items, separators=(",", ":"), sort_keys=True).encode()
    target.write_bytes(gzip.compress(data, 9, mtime=0))
    sys.stdout.write(f"{len(items)} objects, {target.stat().st_size} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
