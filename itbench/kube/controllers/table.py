"""All controllers, in the order in which a change wakes them. Called by `kube.plane`."""

from itbench.kube.controllers import (
    aggregation,
    apiservices,
    cronjob,
    daemonset,
    definitions,
    deployment,
    disruption,
    endpoints,
    eviction,
    expansion,
    expiry,
    flowcontrol,
    garbage,
    hpa,
    job,
    namespaces,
    nodelifecycle,
    policies,
    quota,
    replicaset,
    replicationcontroller,
    serviceaccounts,
    statefulset,
    volumes,
)
from itbench.kube.controllers.base import Controller, MetricsSource


def controllers(metrics: MetricsSource) -> list[Controller]:
    """The rows for the manager.

    Args:
        metrics: pod metrics of a namespace, for the horizontal autoscaler.
    """
    return [
        definitions.CONTROLLER,
        apiservices.CONTROLLER,
        serviceaccounts.ACCOUNTS,
        serviceaccounts.ROOT_CA,
        deployment.CONTROLLER,
        replicaset.CONTROLLER,
        replicationcontroller.CONTROLLER,
        statefulset.CONTROLLER,
        daemonset.CONTROLLER,
        job.CONTROLLER,
        cronjob.CONTROLLER,
        endpoints.SLICE_CONTROLLER,
        endpoints.ENDPOINTS_CONTROLLER,
        endpoints.MIRROR_CONTROLLER,
        garbage.CONTROLLER,
        namespaces.CONTROLLER,
        nodelifecycle.CONTROLLER,
        eviction.TAINTS,
        eviction.POD_GC,
        disruption.CONTROLLER,
        hpa.controller(metrics),
        quota.CONTROLLER,
        volumes.CONTROLLER,
        expansion.CONTROLLER,
        aggregation.CONTROLLER,
        flowcontrol.CONTROLLER,
        policies.CONTROLLER,
        expiry.EVENTS,
        expiry.FINISHED_JOBS,
    ]
