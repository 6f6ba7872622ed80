"""The simulated estate: clock, nodes, kubelets, containers, network and request flow behind the API."""
