"""Rules per kind. The registry asks `behaviour(storage)`; kinds without a row follow the general rules only."""

from itbench.kube.custom import definition
from itbench.kube.kinds import (
    admission,
    aggregation,
    certificates,
    config,
    jobs,
    pods,
    policies,
    policy,
    rare,
    rbac,
    services,
    storage,
    workloads,
)
from itbench.kube.kinds.base import Behaviour

_PLAIN = Behaviour()
_GENERATION = Behaviour(generation=True)
_TABLE: dict[str, Behaviour] = {
    "pods": pods.POD,
    "configmaps": config.CONFIGMAP,
    "secrets": config.SECRET,
    "namespaces": config.NAMESPACE,
    "serviceaccounts": config.SERVICEACCOUNT,
    "nodes": config.NODE,
    "events": config.EVENT,
    "services": services.SERVICE,
    "endpoints": services.ENDPOINTS,
    "replicationcontrollers": workloads.CONTROLLER,
    "resourcequotas": policy.QUOTA,
    "limitranges": policy.LIMITRANGE,
    "persistentvolumes": storage.VOLUME,
    "persistentvolumeclaims": storage.CLAIM,
    "deployments.apps": workloads.DEPLOYMENT,
    "replicasets.apps": workloads.REPLICASET,
    "statefulsets.apps": workloads.STATEFULSET,
    "daemonsets.apps": workloads.DAEMONSET,
    "jobs.batch": jobs.JOB,
    "cronjobs.batch": jobs.CRONJOB,
    "horizontalpodautoscalers.autoscaling": policy.HPA,
    "poddisruptionbudgets.policy": policy.BUDGET,
    "leases.coordination.k8s.io": config.LEASE,
    "endpointslices.discovery.k8s.io": services.ENDPOINTSLICE,
    "ingresses.networking.k8s.io": services.INGRESS,
    "ingressclasses.networking.k8s.io": services.INGRESSCLASS,
    "networkpolicies.networking.k8s.io": services.NETWORKPOLICY,
    "roles.rbac.authorization.k8s.io": rbac.ROLE,
    "clusterroles.rbac.authorization.k8s.io": rbac.CLUSTERROLE,
    "rolebindings.rbac.authorization.k8s.io": rbac.ROLEBINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": rbac.CLUSTERROLEBINDING,
    "priorityclasses.scheduling.k8s.io": policy.PRIORITYCLASS,
    "storageclasses.storage.k8s.io": storage.STORAGECLASS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": admission.VALIDATING,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": admission.MUTATING,
    "validatingadmissionpolicies.admissionregistration.k8s.io": policies.POLICY,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": policies.BINDING,
    "apiservices.apiregistration.k8s.io": aggregation.APISERVICE,
    "certificatesigningrequests.certificates.k8s.io": certificates.SIGNING_REQUEST,
    "customresourcedefinitions.apiextensions.k8s.io": definition.DEFINITION,
    "flowschemas.flowcontrol.apiserver.k8s.io": rare.FLOW_SCHEMA,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": rare.PRIORITY_LEVEL,
    "podtemplates": rare.POD_TEMPLATE,
    "controllerrevisions.apps": rare.REVISION,
    "runtimeclasses.node.k8s.io": rare.RUNTIME_CLASS,
    "volumeattachments.storage.k8s.io": rare.ATTACHMENT,
    "csidrivers.storage.k8s.io": rare.DRIVER,
}


def behaviour(storage: str, *, custom: bool = False) -> Behaviour:
    """The rules of a resource, by its key in the store."""
    return _TABLE.get(storage) or (_GENERATION if custom else _PLAIN)
