"""ReplicationController controller: what the ReplicaSet controller does, for the older kind with a plain map as selector."""

from itbench.kube.controllers import replicaset

CONTROLLER = replicaset.controller("replication-controller", "ReplicationController", "replicationcontrollers")
