"""The controllers: small reconcile functions on one deterministic queue, in world time, through the narrow client.

`manager` drives them; `kube.plane` composes and calls the manager. Each module holds one controller and says what it keeps true.
"""
