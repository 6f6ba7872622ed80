"""All controllers, in the order in which a change wakes them. Called by `kube.plane`."""

from itbench.kube.controllers import deployment, endpoints, garbage, namespaces, replicaset, serviceaccounts
from itbench.kube.controllers.base import Controller, MetricsSource


def controllers(metrics: MetricsSource) -> list[Controller]:
    """The rows for the manager.

    Args:
        metrics: pod metrics of a namespace, for the horizontal autoscaler.
    """
    return [
        serviceaccounts.ACCOUNTS,
        serviceaccounts.ROOT_CA,
        deployment.CONTROLLER,
        replicaset.CONTROLLER,
        endpoints.SLICE_CONTROLLER,
        endpoints.ENDPOINTS_CONTROLLER,
        endpoints.MIRROR_CONTROLLER,
        garbage.CONTROLLER,
        namespaces.CONTROLLER,
    ]
