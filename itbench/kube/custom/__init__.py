"""Custom resources: CustomResourceDefinitions and what they make the control plane serve.

`serving` keeps the resource table in step with the definitions in the store; each served version is one `model.Model`, which the
registry, tables, discovery and OpenAPI ask. `definition` holds the rules of CustomResourceDefinition objects themselves.
"""
