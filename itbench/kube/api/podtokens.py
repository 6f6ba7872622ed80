"""The tokens that kubelets put into volumes: made when a file is read, so that no saved world holds one; made by `server`.

The world reads them through `Services.pod_token`. As a kubelet does, a token is kept until four fifths of its time are over.
"""

from collections.abc import Callable

from itbench.kube.api.tokens import Tokens
from itbench.kube.client import Obj
from itbench.kube.store import Store

_KEPT = 4096
_RENEWED = 0.8


def pod_claims(store: Store, pod: Obj) -> Obj:
    """The claims of a token that is bound to a pod: about it and about its node."""
    meta, node = pod["metadata"], (pod.get("spec") or {}).get("nodeName", "")
    claims: Obj = {"pod": {"name": meta["name"], "uid": meta["uid"]}}
    if node:
        entry = store.get("nodes", "", node)
        known = {"uid": entry.object["metadata"]["uid"]} if entry is not None else {}
        claims["node"] = {"name": node, **known}
    return claims


class PodTokens:
    """Tokens of the pods of one server.

    Args:
        now: Unix seconds on the wire.
    """

    def __init__(self, store: Store, tokens: Tokens, now: Callable[[], float]) -> None:
        self._store, self._tokens, self._now = store, tokens, now
        self._known: dict[tuple[str, str, int], tuple[str, float]] = {}

    def __call__(self, pod: Obj, audience: str, lifetime_s: int) -> str:
        """The token in a pod's file; empty when its account is gone.

        Args:
            audience: empty for the API server.
        """
        meta, spec = pod["metadata"], pod["spec"]
        key = meta["uid"], audience, lifetime_s
        token, until = self._known.get(key, ("", 0.0))
        now = self._now()
        if now < until:
            return token
        account = self._store.get("serviceaccounts", meta["namespace"], spec.get("serviceAccountName") or "default")
        if account is None:
            return token
        bound = pod_claims(self._store, pod)
        token, _ = self._tokens.issue_service_account(account.object, lifetime_s, [audience] if audience else [], bound)
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[key] = token, now + _RENEWED * lifetime_s
        return token
