"""Admission: what may change or refuse a write after it was decoded and before it is stored.

Plugins are functions of a `Write`. The registry runs `MUTATING`, then validation, then `VALIDATING`. Their order is that of the
real server. What they need beyond the write (who may do what, how webhooks are reached) is in `Registry.services`.
"""

from itbench.kube.admission.accounts import service_account
from itbench.kube.admission.addresses import cluster_ips
from itbench.kube.admission.certificaterequests import certificate_rules, request_owner
from itbench.kube.admission.lifecycle import namespace_lifecycle, protect_storage
from itbench.kube.admission.limits import limit_bounds, limit_defaults
from itbench.kube.admission.noderestriction import node_restriction
from itbench.kube.admission.policies import validating_policies
from itbench.kube.admission.quota import resource_quota
from itbench.kube.admission.resize import claim_resize
from itbench.kube.admission.scheduling import default_storage_class, default_tolerations, priority, taint_new_node
from itbench.kube.admission.security import pod_security
from itbench.kube.admission.services import Services
from itbench.kube.admission.webhooks import mutating_webhooks, mutating_webhooks_at_the_end, validating_webhooks
from itbench.kube.admission.write import Operation, Plugin, Write

_DEFAULTING: tuple[Plugin, ...] = (
    namespace_lifecycle,
    limit_defaults,
    service_account,
    taint_new_node,
    priority,
    default_tolerations,
    default_storage_class,
    protect_storage,
    request_owner,
)
MUTATING: tuple[Plugin, ...] = (*_DEFAULTING, mutating_webhooks(_DEFAULTING))
ALLOCATING: tuple[Plugin, ...] = (cluster_ips,)
"""Run after validation: they take addresses out of ranges."""
CONNECTING: tuple[Plugin, ...] = (
    node_restriction,
    mutating_webhooks_at_the_end,
    validating_policies,
    validating_webhooks,
)
"""All that looks at connections and at what is posted to subresources."""
VALIDATING: tuple[Plugin, ...] = (
    namespace_lifecycle,
    limit_bounds,
    certificate_rules,
    claim_resize,
    pod_security,
    *CONNECTING,
    resource_quota,
)

__all__ = ["ALLOCATING", "CONNECTING", "MUTATING", "VALIDATING", "Operation", "Plugin", "Services", "Write"]
