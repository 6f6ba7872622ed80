package check

import rego.v1

# first draft, tried on the pods of the last incident
violations contains {"kind": item.kind, "namespace": item.metadata.namespace, "name": item.metadata.name} if {
	some item in input.items
	item.kind == "Pod"
	item.spec.hostPID == true
}

default result := {"state": "satisfied", "violations": []}

result := {"state": "not_satisfied", "violations": [entry | some entry in violations]} if count(violations) > 0
