"""What becomes of pods: pulls, configuration, mounts, crashes, probes, ends, with a kubelet's texts."""

from collections.abc import Callable
from typing import Any

from itbench.core.clock import rfc3339
from itbench.kube.client import Client
from itbench.kube.controllers.base import seconds
from itbench.world.estate import World

Events = Callable[[Client, str], list[tuple[str, str]]]
Pods = Callable[[Client, str], list[dict[str, Any]]]


def run_pod(kubectl: Client, name: str, container: dict[str, Any], **spec: Any) -> None:
    """Create a bare pod."""
    body = {"containers": [{"name": "main", "image": "example.com/api:1.0", **container}], **spec}
    kubectl.create(
        "pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "toy"}, "spec": body}, "toy"
    )


def status_of(kubectl: Client, name: str) -> dict[str, Any]:
    """Status of the only container."""
    return dict(kubectl.get("pods", name, "toy")["status"]["containerStatuses"][0])


def test_settled_pods_are_running_and_ready_with_addresses_of_their_node(world: World, kubectl: Client) -> None:
    found = kubectl.list("pods", "toy")
    assert len(found) == 5
    for pod in found:
        assert pod["status"]["phase"] == "Running"
        conditions = {c["type"]: c["status"] for c in pod["status"]["conditions"]}
        assert conditions["Ready"] == conditions["ContainersReady"] == conditions["Initialized"] == "True"
        assert pod["status"]["podIP"].startswith(f"10.244.{pod['spec']['nodeName'][-1]}.")
        assert pod["status"]["hostIP"].startswith("172.18.0.")


def test_an_unknown_tag_is_pulled_again_and_again_with_growing_back_off(
    world: World, kubectl: Client, events: Events
) -> None:
    run_pod(kubectl, "typo", {"image": "example.com/api:9.9"})
    reasons: list[str] = []
    while reasons[-1:] != ["ErrImagePull"] and world.now < 30:
        world.advance(world.now + 0.5)
        state = status_of(kubectl, "typo")["state"]["waiting"]
        reasons.append(state["reason"])
    assert set(reasons) == {"ContainerCreating", "ErrImagePull"}
    assert state["message"].endswith("example.com/api:9.9: not found")
    world.advance(world.now + 60)
    state = status_of(kubectl, "typo")["state"]["waiting"]
    assert state["reason"] == "ImagePullBackOff"
    assert state["message"].startswith('Back-off pulling image "example.com/api:9.9": ErrImagePull: ')
    seen = events(kubectl, "typo")
    assert ("Failed", "Error: ErrImagePull") in seen
    assert ("BackOff", 'Back-off pulling image "example.com/api:9.9"') in seen
    pulls = [
        e for e in kubectl.list("events", "toy") if e["involvedObject"]["name"] == "typo" and e["reason"] == "Pulling"
    ]
    assert pulls[0]["count"] == 3  # at 0, about 11 and about 32 seconds


def test_a_missing_config_map_key_is_a_config_error_until_it_appears(
    world: World, kubectl: Client, events: Events
) -> None:
    reference = {"configMapKeyRef": {"name": "settings", "key": "mode"}}
    run_pod(kubectl, "unset", {"env": [{"name": "MODE", "valueFrom": reference}]})
    world.advance(world.now + 10)
    state = status_of(kubectl, "unset")["state"]["waiting"]
    assert (state["reason"], state["message"]) == ("CreateContainerConfigError", 'configmap "settings" not found')
    assert ("Failed", 'Error: configmap "settings" not found') in events(kubectl, "unset")
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "toy"},
        "data": {"mode": "x"},
    }
    kubectl.create("configmaps", config, "toy")
    world.advance(world.now + 20)
    assert status_of(kubectl, "unset")["ready"] is True


def test_a_volume_without_its_secret_keeps_the_pod_from_starting(world: World, kubectl: Client, events: Events) -> None:
    mount = {"volumeMounts": [{"name": "keys", "mountPath": "/keys"}]}
    run_pod(kubectl, "nokeys", mount, volumes=[{"name": "keys", "secret": {"secretName": "keys"}}])
    world.advance(world.now + 5)
    assert status_of(kubectl, "nokeys")["state"] == {"waiting": {"reason": "ContainerCreating"}}
    text = 'MountVolume.SetUp failed for volume "keys" : secret "keys" not found'
    assert ("FailedMount", text) in events(kubectl, "nokeys")


def test_a_program_that_lacks_a_variable_crashes_in_a_loop(world: World, kubectl: Client, events: Events) -> None:
    run_pod(kubectl, "crash", {})
    world.advance(world.now + 45)
    status = status_of(kubectl, "crash")
    uid = kubectl.get("pods", "crash", "toy")["metadata"]["uid"]
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert (
        status["state"]["waiting"]["message"] == f"back-off 40s restarting failed container=main pod=crash_toy({uid})"
    )
    assert status["lastState"]["terminated"]["exitCode"] == 1
    assert status["restartCount"] == 3
    assert ("BackOff", f"Back-off restarting failed container main in pod crash_toy({uid})") in events(kubectl, "crash")


def test_a_command_that_the_image_lacks_cannot_start(world: World, kubectl: Client) -> None:
    run_pod(kubectl, "wrong", {"image": "nginx:1.27", "command": ["/opt/start"]})
    world.advance(world.now + 4)
    ended = status_of(kubectl, "wrong")
    record = ended["state"].get("terminated") or ended["lastState"]["terminated"]
    assert (record["exitCode"], record["reason"]) == (128, "StartError")
    assert 'exec: "/opt/start": stat /opt/start: no such file or directory' in record["message"]


def test_a_program_larger_than_its_limit_is_killed(world: World, kubectl: Client) -> None:
    container = {"env": [{"name": "MODE", "value": "x"}], "resources": {"limits": {"memory": "10Mi"}}}
    run_pod(kubectl, "small", container)
    world.advance(world.now + 30)
    last = status_of(kubectl, "small")["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (137, "OOMKilled")


def test_a_script_runs_to_its_end_once(world: World, kubectl: Client) -> None:
    run_pod(
        kubectl,
        "job",
        {"image": "busybox:1.37", "command": ["sh", "-c", "echo begin; sleep 5; exit 3"]},
        restartPolicy="Never",
    )
    world.advance(world.now + 4)
    assert kubectl.get("pods", "job", "toy")["status"]["phase"] == "Running"
    world.advance(world.now + 6)
    pod = kubectl.get("pods", "job", "toy")
    assert pod["status"]["phase"] == "Failed"
    assert status_of(kubectl, "job")["state"]["terminated"]["exitCode"] == 3


def test_init_containers_wait_in_a_loop_for_what_comes_later(world: World, kubectl: Client) -> None:
    wait = {
        "name": "wait",
        "image": "busybox:1.37",
        "command": ["sh", "-c", "until nc -z later 80; do echo waiting; sleep 2; done"],
    }
    run_pod(kubectl, "patient", {"image": "nginx:1.27"}, initContainers=[wait])
    world.advance(world.now + 10)
    assert status_of(kubectl, "patient")["state"]["waiting"]["reason"] == "PodInitializing"
    service = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}
    kubectl.create(
        "services",
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "later", "namespace": "toy"}, "spec": service},
        "toy",
    )
    world.advance(world.now + 10)
    assert status_of(kubectl, "patient")["ready"] is True


def test_a_failing_liveness_probe_restarts_the_container(world: World, kubectl: Client, events: Events) -> None:
    probe = {"httpGet": {"path": "/nowhere", "port": 80}, "periodSeconds": 5, "failureThreshold": 2}
    run_pod(kubectl, "sick", {"image": "nginx:1.27", "livenessProbe": probe})
    world.advance(world.now + 25)
    assert status_of(kubectl, "sick")["restartCount"] >= 1
    seen = events(kubectl, "sick")
    assert ("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 404") in seen
    assert ("Killing", "Container main failed liveness probe, will be restarted") in seen


def test_a_deleted_pod_is_stopped_and_replaced(world: World, kubectl: Client, pods: Pods, events: Events) -> None:
    victim = pods(kubectl, "api")[0]["metadata"]["name"]
    kubectl.delete("pods", victim, "toy")
    world.advance(world.now + 10)
    names = [pod["metadata"]["name"] for pod in pods(kubectl, "api")]
    assert victim not in names
    assert len(names) == 2
    assert ("Killing", "Stopping container api") in events(kubectl, victim)


def test_a_rollout_replaces_every_pod(world: World, kubectl: Client, pods: Pods) -> None:
    before = {pod["metadata"]["name"] for pod in pods(kubectl, "web")}
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "example.com/web:1.1"}]}}}}
    kubectl.patch("deployments.apps", "web", "toy", patch, kind="strategic")
    world.advance(world.now + 30)
    after = pods(kubectl, "web")
    assert before.isdisjoint({pod["metadata"]["name"] for pod in after})
    assert {pod["spec"]["containers"][0]["image"] for pod in after} == {"example.com/web:1.1"}


def test_nodes_keep_their_leases_and_stay_ready(world: World, kubectl: Client) -> None:
    world.advance(world.now + 200)
    for node in kubectl.list("nodes"):
        ready = next(c for c in node["status"]["conditions"] if c["type"] == "Ready")
        assert ready["status"] == "True"


def test_mounted_config_follows_the_object_after_a_while(world: World, kubectl: Client) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "page", "namespace": "toy"},
        "data": {"a": "1"},
    }
    kubectl.create("configmaps", config, "toy")
    run_pod(
        kubectl,
        "reader",
        {"image": "nginx:1.27", "volumeMounts": [{"name": "page", "mountPath": "/page"}]},
        volumes=[{"name": "page", "configMap": {"name": "page"}}],
    )
    world.advance(world.now + 10)
    kubectl.patch("configmaps", "page", "toy", {"data": {"a": "2"}})
    world.advance(world.now + 5)
    state = next(pod for pod in world.pods() if pod.name == "reader")
    assert state.volumes["page"]["a"] == "1"
    world.advance(world.now + 70)
    assert state.volumes["page"]["a"] == "2"


def test_nodes_post_their_status_every_five_minutes_and_no_more(world: World, kubectl: Client) -> None:
    def beats() -> list[tuple[str, str]]:
        rows = [row for node in kubectl.list("nodes") for row in node["status"]["conditions"]]
        return sorted({(row["lastHeartbeatTime"], row["lastTransitionTime"]) for row in rows})

    (at, since), writes = beats()[0], set()
    assert len(beats()) == 1
    start = world.now
    for step in range(1, 67):
        world.advance(start + 10.0 * step)
        writes |= {node["metadata"]["resourceVersion"] for node in kubectl.list("nodes")}
        found = beats()
        assert len(found) == 1, "all nodes at once, all conditions of a node"
        assert found[0][1] == since
        age_s = seconds(rfc3339(world.now)) - seconds(found[0][0])
        assert age_s <= 301.0
    assert found[0][0] > at
    assert len(writes) <= 2 * 3 + 2


def test_a_job_pod_that_is_deleted_at_work_did_not_succeed(world: World, kubectl: Client) -> None:
    """A script is killed (137), so that the Job makes another pod for its index; a server ends in good order."""
    container = {"name": "c", "image": "busybox:1", "command": ["sleep", "600"]}
    pod = {"restartPolicy": "Never", "containers": [container]}
    spec = {"completions": 1, "completionMode": "Indexed", "template": {"spec": pod}}
    kubectl.create("jobs.batch", {"metadata": {"name": "j"}, "spec": spec}, "default")
    kubectl.create(
        "pods", {"metadata": {"name": "s"}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}, "default"
    )
    world.advance(world.now + 20.0)
    (name,) = [row["metadata"]["name"] for row in kubectl.list("pods", "default") if row["metadata"]["name"] != "s"]
    position = kubectl.changes(-1)[1]
    for each in (name, "s"):
        kubectl.delete("pods", each, "default")
    world.advance(world.now + 40.0)
    ends: dict[str, tuple[str, int]] = {}
    for change in kubectl.changes(position, ("pods",))[0]:
        status = change.object.get("status") or {}
        for row in status.get("containerStatuses") or ():
            if "terminated" in row["state"]:
                ends[change.object["metadata"]["name"]] = status["phase"], row["state"]["terminated"]["exitCode"]
    assert ends == {name: ("Failed", 137), "s": ("Succeeded", 0)}
    status = kubectl.get("jobs.batch", "j", "default")["status"]
    assert (status.get("succeeded", 0), status["failed"], status["active"]) == (0, 1, 1)


def test_pods_of_a_node_share_its_folders(world: World, kubectl: Client) -> None:
    """What one writes through a hostPath volume the next finds, also in a world that was saved and loaded."""
    node = kubectl.list("nodes")[0]["metadata"]["name"]

    def script(line: str, client: Client, name: str) -> None:
        mount = {"name": "d", "mountPath": "/data"}
        container = {"name": "c", "image": "busybox:1", "command": ["sh", "-c", line], "volumeMounts": [mount]}
        volume = {"name": "d", "hostPath": {"path": "/srv/x"}}
        spec = {"nodeName": node, "restartPolicy": "Never", "containers": [container], "volumes": [volume]}
        client.create("pods", {"metadata": {"name": name}, "spec": spec}, "default")

    script("echo hi > /data/f; sleep 600", kubectl, "one")
    world.advance(world.now + 20.0)
    script("grep hi /data/f", kubectl, "two")
    world.advance(world.now + 20.0)
    assert kubectl.get("pods", "two", "default")["status"]["phase"] == "Succeeded"
    again = World.load(world.save())
    other = again.planes["main"].client("kubectl")
    script("grep hi /data/f && echo more > /data/g", other, "three")
    again.advance(again.now + 20.0)
    assert other.get("pods", "three", "default")["status"]["phase"] == "Succeeded"
    kubelets = again.clusters["main"].kubelets
    (one,) = [pod for pod in kubelets.pods.values() if pod.name == "one"]
    assert one.volumes["d"]["g"] == "more\n"
