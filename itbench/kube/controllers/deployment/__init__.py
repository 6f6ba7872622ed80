"""Deployment controller: revisions (`revisions`), arithmetic (`scaling`), conditions (`progress`), one pass (`rollout`).

Source: behaviour of kube-controller-manager 1.34.
"""

from itbench.kube.controllers.deployment.rollout import CONTROLLER

__all__ = ["CONTROLLER"]
