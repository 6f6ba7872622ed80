package check

import rego.v1

templated := {"Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "ReplicationController", "Job"}

spec_of(object) := object.spec if object.kind == "Pod"

spec_of(object) := object.spec.template.spec if object.kind in templated

spec_of(object) := object.spec.jobTemplate.spec.template.spec if object.kind == "CronJob"

readable if {
	is_array(input.items)
	every item in input.items {
		is_object(spec_of(item))
	}
}

made(item) if {
	some owner in item.metadata.ownerReferences
	owner.controller == true
}

shares(spec) if spec.hostPID == true

shares(spec) if spec.hostIPC == true

violations contains {"kind": item.kind, "namespace": item.metadata.namespace, "name": object.get(item.metadata, "name", "")} if {
	some item in input.items
	not made(item)
	shares(spec_of(item))
}

default result := {"state": "not_assessed", "violations": []}

result := {"state": "satisfied", "violations": []} if {
	readable
	count(violations) == 0
}

result := {"state": "not_satisfied", "violations": [entry | some entry in violations]} if {
	readable
	count(violations) > 0
}
