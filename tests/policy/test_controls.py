"""Controls over Kubernetes objects: each with what violates it, what only looks so, and what nearly does."""

import copy

import pytest

from itbench.kube.controllers.bootstrap import defaults
from itbench.policy.controls.catalog import CONTROLS, PROFILES, control
from itbench.policy.controls.pods import TEMPLATES, WORKLOADS

GOOD = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
KINDS = {
    "pods": "Pod",
    "deployments.apps": "Deployment",
    "daemonsets.apps": "DaemonSet",
    "statefulsets.apps": "StatefulSet",
    "replicasets.apps": "ReplicaSet",
    "replicationcontrollers": "ReplicationController",
    "jobs.batch": "Job",
    "cronjobs.batch": "CronJob",
}


def container(name="c", **security):
    return {"name": name, "image": "i:1", "securityContext": {**GOOD, **security}}


def spec(*containers, **more):
    return {"containers": list(containers) or [container()], "automountServiceAccountToken": False, **more}


def workload(resource, pod, name="w", namespace="shop", **meta):
    inner = pod
    for step in reversed(TEMPLATES[resource]):
        inner = {step: inner}
    return {"kind": KINDS[resource], "metadata": {"name": name, "namespace": namespace, "uid": name, **meta}, **inner}


def states(number, objects):
    return [(str(found.subject), found.state) for found in control(number).check(objects)]


def state(number, pod, resource="pods"):
    ((_, found),) = states(number, {resource: [workload(resource, pod)]})
    return found


BAD = {
    "5.2.2": spec(container(privileged=True)),
    "5.2.3": spec(hostPID=True),
    "5.2.4": spec(hostIPC=True),
    "5.2.5": spec(hostNetwork=True),
    "5.2.6": spec(container(allowPrivilegeEscalation=None)),
    "5.2.7": spec(container(runAsUser=0)),
    "5.2.8": spec(container(capabilities={"drop": ["KILL"]})),
    "5.2.9": spec(container(capabilities={"drop": ["ALL"], "add": ["cap_sys_admin"]})),
    "5.2.10": spec(securityContext={"windowsOptions": {"hostProcess": True}}),
    "5.2.11": spec(volumes=[{"name": "v", "hostPath": {"path": "/var/log"}}]),
    "5.2.12": spec({**container(), "ports": [{"containerPort": 80, "hostPort": 8080}]}),
    "5.4.1": spec({**container(), "env": [{"name": "P", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}),
    "5.6.2": spec(container(seccompProfile={"type": "Unconfined"})),
}


@pytest.mark.parametrize("number", BAD)
@pytest.mark.parametrize("resource", WORKLOADS)
def test_a_pod_control_flags_every_kind_that_makes_pods_and_accepts_a_hardened_one(number, resource):
    assert state(number, BAD[number], resource) == "not_satisfied"
    assert state(number, spec(), resource) == "satisfied"


@pytest.mark.parametrize("number", [n for n in BAD if n not in ("5.2.3", "5.2.4", "5.2.5", "5.2.10", "5.2.11")])
@pytest.mark.parametrize("place", ["initContainers", "ephemeralContainers"])
def test_a_container_control_looks_into_every_list_of_containers(number, place):
    (bad,) = BAD[number]["containers"]
    assert state(number, spec(container(), **{place: [{**bad, "name": "second"}]})) == "not_satisfied"


@pytest.mark.parametrize(
    ("number", "pod", "expected"),
    [
        ("5.2.3", spec(hostPID=False), "satisfied"),
        ("5.2.7", spec(container(runAsNonRoot=None), securityContext={"runAsNonRoot": True}), "not_satisfied"),
        ("5.2.7", spec({"name": "c"}, securityContext={"runAsNonRoot": True}), "satisfied"),
        ("5.2.7", spec(container(runAsNonRoot=False), securityContext={"runAsNonRoot": True}), "not_satisfied"),
        ("5.2.7", spec({"name": "c"}, securityContext={"runAsUser": 1000}), "satisfied"),
        ("5.2.8", spec(container(capabilities={"drop": ["net_raw"]})), "satisfied"),
        ("5.2.8", spec(container(capabilities={"drop": ["ALL"], "add": ["all"]})), "not_satisfied"),
        ("5.2.8", spec(container(privileged=True)), "not_satisfied"),
        ("5.2.9", spec(container(capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]})), "satisfied"),
        ("5.2.9", spec(container(capabilities={"drop": ["NET_RAW"]})), "not_satisfied"),
        ("5.4.1", spec({"name": "c", "envFrom": [{"secretRef": {"name": "s"}}]}), "not_satisfied"),
        ("5.4.1", spec({"name": "c", "envFrom": [{"configMapRef": {"name": "s"}}]}), "satisfied"),
        ("5.6.2", spec({"name": "c"}, securityContext={"seccompProfile": {"type": "Localhost"}}), "satisfied"),
        ("5.6.2", spec({"name": "c"}), "not_satisfied"),
    ],
)
def test_the_effective_value_decides(number, pod, expected):
    assert state(number, pod) == expected


def owned(name, by):
    return {"ownerReferences": [{"uid": by, "controller": True, "kind": "X", "name": by}], "name": name, "uid": name}


def test_pods_are_reported_with_what_made_them_unless_they_are_worse():
    deployment = workload("deployments.apps", spec(hostPID=True), "d")
    replicas = workload("replicasets.apps", spec(hostPID=True), **owned("r", "d"))
    same = workload("pods", spec(hostPID=True), **owned("p", "r"))
    objects = {"deployments.apps": [deployment], "replicasets.apps": [replicas], "pods": [same]}
    assert states("5.2.3", objects) == [("Deployment/shop/d", "not_satisfied")]
    objects["deployments.apps"] = [workload("deployments.apps", spec(), "d")]
    assert ("ReplicaSet/shop/r", "not_satisfied") in states("5.2.3", objects)
    orphan = {"pods": [workload("pods", spec(hostPID=True), **owned("p", "gone"))]}
    assert states("5.2.3", orphan) == [("Pod/shop/p", "not_satisfied")]


def test_a_pod_without_a_name_of_its_own_is_not_lost():
    pod = workload("pods", spec(hostIPC=True))
    del pod["metadata"]["name"], pod["metadata"]["uid"]
    assert [found.state for found in control("5.2.4").check({"pods": [pod]})] == ["not_satisfied"]


def role(*rules, name="r", kind="ClusterRole", **meta):
    return {"kind": kind, "metadata": {"name": name, **meta}, "rules": list(rules)}


def rule(groups, resources, verbs, **more):
    return {"apiGroups": groups, "resources": resources, "verbs": verbs, **more}


@pytest.mark.parametrize(
    ("number", "bad", "fine"),
    [
        ("5.1.2", rule([""], ["secrets"], ["list"]), rule([""], ["secrets"], ["get", "list"], resourceNames=["a"])),
        ("5.1.2", rule(["*"], ["*"], ["get"]), rule([""], ["configmaps"], ["*"])),
        ("5.1.3", rule(["*"], ["pods"], ["get"]), rule(["apps"], ["deployments/scale"], ["get"])),
        ("5.1.3", {"nonResourceURLs": ["*"], "verbs": ["get"]}, {"nonResourceURLs": ["/healthz"], "verbs": ["get"]}),
        ("5.1.4", rule(["batch"], ["cronjobs"], ["create"]), rule([""], ["pods"], ["get", "delete"])),
        ("5.1.8", rule([""], ["serviceaccounts"], ["impersonate"]), rule([""], ["serviceaccounts"], ["get"])),
        ("5.1.8", rule(["rbac.authorization.k8s.io"], ["roles"], ["escalate"]), rule(["apps"], ["roles"], ["bind"])),
        ("5.1.10", rule([""], ["nodes/proxy"], ["get"]), rule([""], ["nodes/*", "nodes/metrics"], ["get"])),
        ("5.1.10", rule([""], ["*/proxy"], ["create"]), rule([""], ["pods/proxy"], ["get"])),
        ("5.1.12", rule(["admissionregistration.k8s.io"], ["mutatingwebhookconfigurations"], ["patch"]),
         rule(["admissionregistration.k8s.io"], ["mutatingwebhookconfigurations"], ["list"])),
        ("5.1.13", rule([""], ["serviceaccounts/token"], ["create"]), rule([""], ["serviceaccounts"], ["create"])),
    ],
)  # fmt: skip
def test_a_role_control_reads_rules_as_the_server_does(number, bad, fine):
    objects = {"clusterroles.rbac.authorization.k8s.io": [role(bad, name="bad"), role(fine, name="fine")]}
    assert states(number, objects) == [("ClusterRole/bad", "not_satisfied"), ("ClusterRole/fine", "satisfied")]


def test_what_kubernetes_ships_is_no_subject_but_a_changed_or_lookalike_role_is():
    shipped = [copy.deepcopy(obj) for obj in defaults() if obj["kind"] == "ClusterRole"]
    objects = {"clusterroles.rbac.authorization.k8s.io": shipped}
    assert states("5.1.3", objects) == []
    label = {"labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}
    shipped.append(role(rule(["*"], ["*"], ["*"]), name="system:controller:fake", **label))
    for obj in shipped:
        if obj["metadata"]["name"] == "system:discovery":
            obj["rules"] = [rule(["*"], ["*"], ["*"])]
    found = [subject for subject, verdict in states("5.1.3", objects) if verdict == "not_satisfied"]
    assert found == ["ClusterRole/system:discovery", "ClusterRole/system:controller:fake"]


def binding(role_name, subjects, name="b", kind="ClusterRoleBinding", **meta):
    return {
        "kind": kind,
        "metadata": {"name": name, **meta},
        "roleRef": {"kind": "ClusterRole", "name": role_name},
        "subjects": subjects,
    }


def test_only_the_binding_of_a_fresh_cluster_may_give_cluster_admin():
    fresh = [obj for obj in defaults() if obj["kind"] == "ClusterRoleBinding"]
    team = binding("cluster-admin", [{"kind": "Group", "name": "devs"}], "devs")
    wider = binding("cluster-admin", [{"kind": "Group", "name": "system:authenticated"}], "cluster-admin")
    objects = {"clusterrolebindings.rbac.authorization.k8s.io": [*fresh, team, wider]}
    found = [subject for subject, verdict in states("5.1.1", objects) if verdict == "not_satisfied"]
    assert found == ["ClusterRoleBinding/devs", "ClusterRoleBinding/cluster-admin"]


def test_a_default_account_needs_neither_token_nor_binding():
    def account(namespace, **more):
        return {"kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}, **more}

    bound = binding("view", [{"kind": "ServiceAccount", "name": "default", "namespace": "b"}])
    accounts = [
        account("a", automountServiceAccountToken=False),
        account("b", automountServiceAccountToken=False),
        account("c"),
    ]
    objects = {"serviceaccounts": accounts, "clusterrolebindings.rbac.authorization.k8s.io": [bound]}
    assert [verdict for _, verdict in states("5.1.5", objects)] == ["satisfied", "not_satisfied", "not_satisfied"]


@pytest.mark.parametrize(
    ("own", "of_account", "expected"),
    [
        (None, None, "not_satisfied"),
        (None, False, "satisfied"),
        (True, None, "satisfied"),
        (False, True, "satisfied"),
    ],
)
def test_a_token_is_fine_when_somebody_decided(own, of_account, expected):
    pod = {"containers": [container()], "serviceAccountName": "app"}
    account = {"kind": "ServiceAccount", "metadata": {"name": "app", "namespace": "shop"}}
    if own is not None:
        pod["automountServiceAccountToken"] = own
    if of_account is not None:
        account["automountServiceAccountToken"] = of_account
    objects = {"pods": [workload("pods", pod)], "serviceaccounts": [account]}
    assert [verdict for _, verdict in states("5.1.6", objects)] == [expected]


def test_a_namespace_with_workloads_needs_a_policy_and_an_empty_one_does_not():
    names = [{"kind": "Namespace", "metadata": {"name": name}} for name in ("busy", "covered", "empty")]
    pods = [workload("pods", spec(), name, name) for name in ("busy", "covered")]
    policy = {"kind": "NetworkPolicy", "metadata": {"name": "deny", "namespace": "covered"}}
    objects = {"namespaces": names, "pods": pods, "networkpolicies.networking.k8s.io": [policy]}
    assert [verdict for _, verdict in states("5.3.2", objects)] == ["not_satisfied", "satisfied", "not_applicable"]


def test_the_namespace_default_may_hold_only_what_kubernetes_put_there():
    own = {"kind": "Service", "metadata": {"name": "kubernetes", "namespace": "default"}}
    names = [{"kind": "Namespace", "metadata": {"name": "default"}}]
    assert states("5.6.4", {"namespaces": names, "services": [own]}) == [("Namespace/default", "satisfied")]
    objects = {"namespaces": names, "services": [own], "pods": [workload("pods", spec(), namespace="default")]}
    assert states("5.6.4", objects) == [("Namespace/default", "not_satisfied")]


def test_controls_have_distinct_ids_words_of_their_own_and_need_no_secrets():
    assert len({each.id for each in CONTROLS}) == len(CONTROLS) >= 12
    assert all(each.title and each.expected and each.why and each.fix and each.resources for each in CONTROLS)
    assert not any("secrets" in each.resources for each in CONTROLS)
    manual = {each.id for each in PROFILES["cis-k8s"].manual}
    assert not manual & {each.id for each in CONTROLS}


def test_an_empty_estate_has_no_subjects_and_so_nothing_that_holds():
    assert [found for each in CONTROLS for found in each.check({})] == []
