"""The rules of thumb: each finds its own way for things to break and leaves a healthy estate alone."""

import copy
import json

import pytest

from itbench.agents.builtin import account, heuristic
from itbench.agents.builtin.rules import CERTAIN, PLAUSIBLE, View, findings
from itbench.core.documents.task import Task, ToolSpec
from itbench.tools.registry import ToolResult


def deployment(name, **container):
    """A deployment with one container that offers port 8080."""
    spec = {"containers": [{"name": name, "image": f"{name}:1", "ports": [{"containerPort": 8080}], **container}]}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    return {"metadata": {"name": name}, "spec": {"template": template}}


def pod(name, **status):
    """A pod of the deployment of that name."""
    owner = [{"kind": "ReplicaSet", "name": f"{name}-2"}]
    spec = {"containers": [{"name": name, "ports": [{"containerPort": 8080}]}]}
    return {
        "metadata": {"name": f"{name}-2-x", "labels": {"app": name}, "ownerReferences": owner},
        "spec": spec,
        "status": status,
    }


def replicaset(name, revision):
    """One revision of a deployment."""
    return {"metadata": {"name": f"{name}-{revision}", "ownerReferences": [{"kind": "Deployment", "name": name}]}}


def service(name, selector, port=8080, target=8080):
    """A service with one port."""
    return {"metadata": {"name": name}, "spec": {"selector": selector, "ports": [{"port": port, "targetPort": target}]}}


def healthy():
    """A namespace in which nothing is wrong."""
    return View(
        namespace="shop",
        page="cart errors after orders",
        deployments=[deployment("cart"), deployment("web", env=[{"name": "CART_ADDR", "value": "cart:8080"}])],
        replicasets=[replicaset("cart", 1), replicaset("cart", 2), replicaset("web", 2)],
        pods=[pod("cart"), pod("web")],
        services=[service("cart", {"app": "cart"}), service("web", {"app": "web"})],
        nodes=[{"metadata": {"name": "node-1", "labels": {"disk": "ssd"}}}],
    )


def only(view, rules=CERTAIN):
    """The single finding as (entity, mechanism, commands)."""
    (finding,) = findings(view, rules)
    return finding.entity, finding.mechanism, [" ".join(command) for command in finding.repair]


def test_a_healthy_namespace_gives_no_finding():
    """Neither certain nor plausible."""
    assert findings(healthy(), CERTAIN + PLAUSIBLE) == []


@pytest.mark.parametrize(
    ("reason", "mechanism"),
    [
        ("ImagePullBackOff", "image-unavailable"),
        ("CrashLoopBackOff", "crash-on-start"),
        ("CreateContainerConfigError", "config-missing"),
    ],
)
def test_a_pod_that_cannot_start_leads_to_its_deployment(reason, mechanism):
    """The kubelet's reason is the mechanism; the last rollout is taken back."""
    view = healthy()
    view.pods[0]["status"] = {"containerStatuses": [{"state": {"waiting": {"reason": reason}}}]}
    assert only(view) == ("deployment/shop/cart", mechanism, ["rollout undo deployment/cart -n shop"])


def test_without_an_older_revision_nothing_is_taken_back():
    """The cause is named all the same."""
    view = healthy()
    view.pods[1]["status"] = {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]}
    assert only(view) == ("deployment/shop/web", "image-unavailable", [])


def test_a_selector_that_no_node_satisfies_is_removed():
    """Only the key that does not fit."""
    view = healthy()
    view.deployments[0]["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "nvme"}
    view.pods[0]["status"] = {"conditions": [{"type": "PodScheduled", "status": "False"}]}
    entity, mechanism, (command,) = only(view)
    assert (entity, mechanism) == ("deployment/shop/cart", "unschedulable")
    assert '{"nodeSelector": {"disk": null}}' in command


def test_an_address_with_a_port_that_the_service_lacks():
    """Corrected to the port that it offers."""
    view = healthy()
    view.deployments[1]["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = "http://cart.shop.svc:8082/x"
    assert only(view) == (
        "deployment/shop/web",
        "endpoint-wrong",
        ["set env deployment/web -n shop -c web CART_ADDR=http://cart.shop.svc:8080/x"],
    )


def test_a_service_with_one_label_too_many():
    """The label that keeps it from its pods is taken out of the selector."""
    view = healthy()
    view.services[0]["spec"]["selector"]["version"] = "v2"
    entity, mechanism, (command,) = only(view)
    assert (entity, mechanism) == ("service/shop/cart", "selector-mismatch")
    assert command.endswith('{"spec": {"selector": {"version": null}}}')


def test_of_two_labels_the_one_that_is_not_the_services_name_goes():
    """Another workload may well carry the foreign label."""
    view = healthy()
    view.services[0]["spec"]["selector"]["version"] = "v2"
    view.pods[1]["metadata"]["labels"]["version"] = "v2"
    assert only(view)[2] == ['patch service/cart -n shop -p {"spec": {"selector": {"version": null}}}']


def test_a_service_that_sends_to_a_closed_port():
    """The target port becomes the one that the containers open."""
    view = healthy()
    view.services[0]["spec"]["ports"][0]["targetPort"] = 9999
    entity, mechanism, (command,) = only(view)
    assert (entity, mechanism) == ("service/shop/cart", "port-mismatch")
    assert '"path": "/spec/ports/0/targetPort", "value": 8080' in command


def test_only_flags_that_the_page_speaks_of_are_switched_off():
    """Other flags stay as they are, and whoever mounts the file reads it again."""
    flags = {
        "cartFailure": {"state": "ENABLED", "defaultVariant": "on", "variants": {"on": True, "off": False}},
        "adHighCpu": {"state": "ENABLED", "defaultVariant": "on", "variants": {"on": True, "off": False}},
    }
    view = healthy()
    view.configmaps = [{"metadata": {"name": "flags"}, "data": {"f.json": json.dumps({"flags": flags})}}]
    view.deployments[1]["spec"]["template"]["spec"]["volumes"] = [{"configMap": {"name": "flags"}}]
    entity, mechanism, (change, restart) = only(view, PLAUSIBLE)
    assert (entity, mechanism) == ("configmap/shop/flags", "flag-activated-defect")
    document = json.loads(json.loads(change.rpartition(" -p ")[2])["data"]["f.json"])
    assert document["flags"]["cartFailure"]["defaultVariant"] == "off"
    assert document["flags"]["adHighCpu"]["defaultVariant"] == "on"
    assert restart == "rollout restart deployment/web -n shop"


def test_retries_are_a_suspicion():
    """A caller that repeats; none when it does not."""
    view = healthy()
    env = view.deployments[1]["spec"]["template"]["spec"]["containers"][0]["env"]
    env.append({"name": "CART_RETRIES", "value": "4"})
    assert only(view, PLAUSIBLE) == (
        "deployment/shop/web",
        "retry-amplification",
        ["set env deployment/web -n shop -c web CART_RETRIES=0"],
    )
    env[-1]["value"] = "0"
    assert findings(view, PLAUSIBLE) == []


class Estate:
    """Answers kubectl get from a view and alerts from a list of counts, one for each look."""

    def __init__(self, view, firing=(0,), before=False):
        self.view, self.firing, self.before, self.commands = view, list(firing), before, []
        self.specs = tuple(
            ToolSpec(name=name, description="", input_schema={}) for name in ("kubectl", "alerts", "promql", "wait")
        )

    async def call(self, name, arguments=None):
        """As the tools would."""
        if name == "alerts":
            count = self.firing.pop(0) if len(self.firing) > 1 else self.firing[0]
            return ToolResult("\n".join(["firing HighErrorRate since t {}"] * count) or "no alerts")
        if name == "promql":
            return ToolResult("{} 1" if self.before else "(no series)")
        if name != "kubectl":
            return ToolResult("")
        command = arguments["command"]
        if command[:2] == ["get", "namespaces"]:
            return ToolResult("namespace/kube-system\nnamespace/shop")
        if command[0] == "get":
            return ToolResult(json.dumps({"items": getattr(self.view, command[1])}))
        self.commands.append(" ".join(command))
        return ToolResult("")


TASK = Task(trial="t", domain="sre", page="cart errors", answers=("diagnosis", "mitigation"))


async def test_it_repairs_and_names_what_it_found():
    """A certain finding needs no alert."""
    view = healthy()
    view.services[0]["spec"]["selector"]["version"] = "v2"
    estate = Estate(view)
    submission = await heuristic.solve(TASK, estate)
    assert [(cause.entity, cause.mechanism) for cause in submission.diagnosis] == [
        ("service/shop/cart", "selector-mismatch")
    ]
    assert len(estate.commands) == 1


@pytest.mark.parametrize(
    ("firing", "before", "verdict", "acted"),
    [
        ((0,), False, "no-incident", False),
        ((0,), True, "recovered", False),
        ((2, 2, 1, 0), True, "recovered", False),
        ((2,), True, "incident", True),
    ],
)
async def test_it_watches_before_it_acts_on_a_suspicion(firing, before, verdict, acted):
    """Alerts that clear by themselves are left alone; those that stay are not."""
    view = healthy()
    env = view.deployments[1]["spec"]["template"]["spec"]["containers"][0]["env"]
    env.append({"name": "CART_RETRIES", "value": "4"})
    estate = Estate(view, firing, before)
    submission = await heuristic.solve(TASK, estate)
    assert submission.verdict == verdict
    assert bool(estate.commands) == acted


RULE = {"IpProtocol": "tcp", "FromPort": 20, "ToPort": 25}


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ({**RULE, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}, True),
        ({**RULE, "IpRanges": [{"CidrIp": "0.0.0.0/1"}, {"CidrIp": "128.0.0.0/1"}]}, True),
        ({**RULE, "Ipv6Ranges": [{"CidrIpv6": "::/0"}]}, True),
        ({"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}, True),
        ({**RULE, "IpRanges": [{"CidrIp": "0.0.0.0/1"}]}, False),
        ({**RULE, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}, False),
        ({"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}, False),
        ({"IpProtocol": "udp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}, False),
    ],
)
def test_ports_open_to_the_world(rule, found):
    """Also in pieces, in both families, in ranges and in all-traffic rules; not for the load balancer's port."""
    group = {"GroupId": "sg-1", "IpPermissions": [copy.deepcopy(rule)]}
    assert bool(list(account.open_rules(group))) == found


class Account:
    """Volumes to be listed; remembers what is done to them."""

    def __init__(self, volumes):
        self.volumes, self.commands = volumes, []
        self.specs = (ToolSpec(name="aws", description="", input_schema={}),)

    async def call(self, name, arguments=None):
        """As the tool would."""
        command = arguments["command"]
        if isinstance(command, str):
            return ToolResult(json.dumps({"Volumes": self.volumes}))
        self.commands.append(" ".join(command[1:]))
        return ToolResult("{}")


async def test_unused_volumes_are_kept_in_snapshots_and_those_tagged_to_keep_are_left():
    """Scratch needs no snapshot."""
    volumes = [
        {"VolumeId": "vol-1"},
        {"VolumeId": "vol-2", "Tags": [{"Key": "purpose", "Value": "scratch"}]},
        {"VolumeId": "vol-3", "Tags": [{"Key": "state", "Value": "restore-in-progress"}]},
    ]
    tools = Account(volumes)
    task = TASK.model_copy(update={"domain": "finops", "page": "Storage cost doubled: unattached EBS volumes?"})
    assert (await heuristic.solve(task, tools)).verdict == "incident"
    assert tools.commands == [
        "create-snapshot --volume-id vol-1",
        "delete-volume --volume-id vol-1",
        "delete-volume --volume-id vol-2",
    ]
