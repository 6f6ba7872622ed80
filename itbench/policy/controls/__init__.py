"""Controls as pure functions over Kubernetes objects: `itbench audit` and the graders of CISO scenarios run the same code."""
