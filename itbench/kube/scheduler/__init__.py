"""The scheduler: filters, scores, preemption and a queue with back-off; `kube.plane` runs it as one more controller.

`cycle` decides for one pod, `scheduler` keeps the queue and acts, `nodes` keeps sums per node, `filters`, `affinity`, `spread`,
`volumes`, `scores` and `preemption` are pure. Texts are those of kube-scheduler 1.34.
"""
