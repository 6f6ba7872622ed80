"""What kubelets may do: a node reads its own Node, its own pods, and what these refer to. Used by the API server beside RBAC.

A user is a node if he is named `system:node:NAME` and in the group `system:nodes`. What the ClusterRole `system:node` (nobody is
bound to) grants holds for him as far as it concerns his node. Lists of pods are refused, whatever their field selector.
"""

from collections.abc import Callable, Iterator

from itbench.kube.client import Client, Obj
from itbench.kube.rbac import MASTERS, Access, Authorizer, User, rule_allows

USER, GROUP = "system:node:", "system:nodes"
LEASES = "kube-node-lease"
_ROLE = "clusterroles.rbac.authorization.k8s.io"
_READS = frozenset({"get", "list", "watch"})
Verdict = tuple[bool, str]


def node_of(name: str, groups: tuple[str, ...]) -> str:
    """The node that a user is, empty for others."""
    return name.removeprefix(USER) if name.startswith(USER) and GROUP in groups else ""


def references(spec: Obj) -> Iterator[tuple[str, str]]:
    """(resource, name) of what the node of a pod with this spec may read for it."""
    for row in spec.get("imagePullSecrets") or ():
        yield "secrets", row["name"]
    for volume in spec.get("volumes") or ():
        yield from _of_source(volume)
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from _of_source(source)
        if "persistentVolumeClaim" in volume:
            yield "persistentvolumeclaims", volume["persistentVolumeClaim"]["claimName"]
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        rows = [row.get("valueFrom") or {} for row in container.get("env") or ()]
        for row in (*rows, *(container.get("envFrom") or ())):
            for resource, keys in _KEYS.items():
                yield from ((resource, row[key]["name"]) for key in keys if key in row)
    yield "serviceaccounts", spec.get("serviceAccountName") or "default"


_KEYS = {"secrets": ("secretKeyRef", "secretRef"), "configmaps": ("configMapKeyRef", "configMapRef")}


def _of_source(source: Obj) -> Iterator[tuple[str, str]]:
    if "configMap" in source:
        yield "configmaps", source["configMap"].get("name", "")
    if "secret" in source:
        yield "secrets", source["secret"].get("secretName") or source["secret"].get("name", "")


class NodeAuthorizer(Authorizer):
    """RBAC, and the rules of nodes for users who are one."""

    def allowed(self, user: User, access: Access) -> Verdict:
        """(whether, why); for a node that is refused, `why` ends the text of the refusal."""
        node = node_of(user.name, user.groups)
        if not node or MASTERS in user.groups:
            return super().allowed(user, access)
        granted, why = self._of_node(node, access)
        if granted:
            return True, ""
        bound = super().allowed(user, access)
        return bound if bound[0] else (False, why)

    def _of_node(self, node: str, access: Access) -> Verdict:
        judge = _JUDGES.get(f"{access.resource}.{access.group}" if access.group else access.resource)
        if judge is not None and not access.path:
            return judge(self._client, node, access)
        return self._by_role(access), ""

    def _by_role(self, access: Access) -> bool:
        return _granted(self._client, access)


def _granted(client: Client, access: Access) -> bool:
    roles = (role for role in client.list(_ROLE) if role["metadata"]["name"] == "system:node")
    return any(rule_allows(rule, access) for role in roles for rule in role.get("rules") or ())


def _related(client: Client, node: str, access: Access) -> Verdict:
    pods = client.list("pods", access.namespace)
    mine = (pod for pod in pods if pod["spec"].get("nodeName") == node)
    if any((access.resource, access.name) in references(pod["spec"]) for pod in mine):
        return True, ""
    return False, f"no relationship found between node '{node}' and this object"


def _reads(client: Client, node: str, access: Access) -> Verdict:
    """Secrets and ConfigMaps."""
    if access.verb not in _READS:
        return False, "can only read resources of this type"
    if access.subresource:
        return False, "cannot read subresource"
    if not access.name:
        return False, "No Object name found"
    return _related(client, node, access)


def _claims(client: Client, node: str, access: Access) -> Verdict:
    if access.subresource == "status" or (access.verb == "get" and access.name):
        return _related(client, node, access)
    return False, "can only get individual resources of this type"


def _accounts(client: Client, node: str, access: Access) -> Verdict:
    if access.verb != "create" or access.subresource != "token":
        return False, "can only create tokens for individual service accounts"
    return _related(client, node, access)


def _nodes(client: Client, node: str, access: Access) -> Verdict:
    if access.verb in _READS and not access.subresource and access.name != node:
        what = f"'{access.name}'" if access.name else "all nodes"
        return False, f"node '{node}' cannot read {what}, only its own Node object"
    return _granted(client, access), ""


def _pods(client: Client, node: str, access: Access) -> Verdict:
    if access.subresource or access.verb not in _READS:
        return _granted(client, access), ""
    if not access.name:
        return False, "can only list/watch pods with spec.nodeName field selector"
    pod = next((row for row in client.list("pods", access.namespace) if row["metadata"]["name"] == access.name), None)
    if pod is not None and pod["spec"].get("nodeName") == node:
        return True, ""
    return False, f"no relationship found between node '{node}' and this object"


def _leases(client: Client, node: str, access: Access) -> Verdict:
    if access.verb not in ("get", "create", "update", "patch", "delete"):
        return False, "can only get, create, update, patch, or delete a node lease"
    if access.namespace != LEASES:
        return False, f'can only access leases in the "{LEASES}" system namespace'
    if access.verb != "create" and access.name != node:
        return False, "can only access node lease with the same name as the requesting node"
    return True, ""


_JUDGES: dict[str, Callable[[Client, str, Access], Verdict]] = {
    "secrets": _reads,
    "configmaps": _reads,
    "persistentvolumeclaims": _claims,
    "serviceaccounts": _accounts,
    "nodes": _nodes,
    "pods": _pods,
    "leases.coordination.k8s.io": _leases,
}
