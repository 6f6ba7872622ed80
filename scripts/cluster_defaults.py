"""Generate `itbench/kube/data/defaults.json.gz`: what a fresh Kubernetes 1.34 cluster holds for its own working.

kubectl get -A -o json clusterroles,clusterrolebindings,roles,rolebindings,flowschemas,prioritylevelconfigurations,\\
servicecidrs,serviceaccounts | python scripts/cluster_defaults.py itbench/kube/data/defaults.json.gz
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

OWN = ("FlowSchema", "PriorityLevelConfiguration", "ServiceCIDR", "ServiceAccount")
"""Kinds whose objects on a fresh cluster are all the cluster's own; of roles and bindings only marked ones are."""


def plain(item: dict[str, Any]) -> dict[str, Any]:
    """The object as an administrator would write it: no server-set metadata, no aggregated rules, no status."""
    kept = ("name", "namespace", "labels", "annotations", "finalizers")
    meta = {k: item["metadata"][k] for k in kept if k in item["metadata"]}
    result = {k: v for k, v in item.items() if k not in ("metadata", "rules", "status")} | {"metadata": meta}
    if "rules" in item:
        result["rules"] = [] if "aggregationRule" in item else item["rules"] or []
    return result


def own(item: dict[str, Any]) -> bool:
    """Whether the cluster itself made an object."""
    if item["metadata"]["name"] == "default" and item["kind"] == "ServiceAccount":
        return False  # a controller makes it in every namespace
    return item["kind"] in OWN or "rbac-defaults" in str(item["metadata"].get("labels"))


def main(target: Path) -> None:
    """Read a List from standard input, write the compressed defaults."""
    items = [plain(item) for item in json.load(sys.stdin)["items"] if own(item)]
    data = json.dumps(items, separators=(",", ":"), sort_keys=True).encode()
    target.write_bytes(gzip.compress(data, 9, mtime=0))
    sys.stdout.write(f"{len(items)} objects, {target.stat().st_size} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
