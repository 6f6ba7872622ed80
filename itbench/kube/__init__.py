"""The embedded control plane: store, registry, admission, API server, controllers, scheduler."""
