"""CEL and Rego in pools of child processes; used by policy, evaluate and kube."""
