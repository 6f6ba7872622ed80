"""Simulated kubelets: they take pods through their life by writing status and events through the API, as real nodes do."""
