"""Validating admission policies: their status says which generation has been looked at, and that its types are sound."""

from itbench.kube.controllers.base import Context, Controller, own_key, put_status

POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"


def reconcile(context: Context, _: str, name: str) -> None:
    """Report on one policy. Expressions are compiled when a policy is written; types of fields are not inferred."""
    policy = context.cache.get(POLICIES, "", name)
    if policy is None:
        return
    status = policy.get("status") or {}
    generation = policy["metadata"].get("generation", 0)
    if status.get("observedGeneration") != generation:
        put_status(context, POLICIES, policy, {**status, "observedGeneration": generation, "typeChecking": {}})


CONTROLLER = Controller("validatingadmissionpolicy-status-controller", {POLICIES: own_key}, reconcile)
