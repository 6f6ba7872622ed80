"""Apps, faults and noise on disk: complete, neutral in what an agent can read, and in step with their behaviour models."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from itbench.core.documents.app import App, Setting
from itbench.core.documents.base import load
from itbench.core.documents.fault import Fault

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
APPS = sorted(path.name for path in (PLAYBOOKS / "apps").iterdir())
CHANGES = sorted(path.parent for part in ("faults", "noise") for path in (PLAYBOOKS / part).glob("*/fault.yaml"))
LOUD = re.compile(r"\b(fault|chaos|inject\w*|decoy|break|bug|sre-\d+)\b", re.IGNORECASE)


def _documents(app: str) -> list[dict[str, Any]]:
    files = sorted((PLAYBOOKS / "apps" / app / "manifests").glob("*.yaml"))
    return [doc for file in files for doc in yaml.load_all(file.read_text(), yaml.CSafeLoader) if doc]


def _deployments(app: str) -> dict[str, dict[str, Any]]:
    return {doc["metadata"]["name"]: doc for doc in _documents(app) if doc["kind"] == "Deployment"}


def _containers(deployment: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from deployment["spec"]["template"]["spec"]["containers"]


@pytest.mark.parametrize("folder", CHANGES, ids=lambda path: path.name)
def test_every_change_declares_itself_and_can_be_taken_back(folder: Path) -> None:
    """A fault or piece of noise has a valid document named like its folder, and tasks that inject and revert."""
    document = load(Fault, folder / "fault.yaml")
    assert document.id == folder.name
    assert document.noise == (folder.parent.name == "noise")
    for name in ("inject.yml", "revert.yml"):
        assert isinstance(yaml.safe_load((folder / name).read_text()), list)


@pytest.mark.parametrize("app", APPS)
def test_nothing_that_an_agent_can_read_names_the_benchmark(app: str) -> None:
    """Names, labels, annotations, images and texts of an app's objects hold none of the words that would give a hint."""
    platform = PLAYBOOKS / "roles" / "platform" / "files"
    texts = [yaml.safe_dump(doc) for doc in _documents(app)]
    texts += [yaml.safe_dump(doc) for file in platform.glob("*.yaml") for doc in yaml.safe_load_all(file.read_text())]
    assert [found[0] for text in texts for found in LOUD.finditer(text)] == []


@pytest.mark.parametrize("app", APPS)
def test_the_registry_knows_every_image_of_both_releases(app: str) -> None:
    """Each container's image, now and one release earlier, is one that the app's document declares."""
    model = load(App, PLAYBOOKS / "apps" / app / "app.yaml")
    known = {f"{program.image}:{tag}" for program in model.programs.values() for tag in program.tags}
    previous = yaml.safe_load((PLAYBOOKS / "apps" / app / "release.yml").read_text())["previous"]
    for deployment in _deployments(app).values():
        for container in _containers(deployment):
            before = container["image"]
            for now, then in previous.items():
                before = before.replace(now, then)
            assert before != container["image"]
            assert {container["image"], before} <= known


def _variables(app: str, container: dict[str, Any]) -> set[str]:
    """Names of the variables that a container gets, one by one and from whole ConfigMaps."""
    data = {doc["metadata"]["name"]: doc["data"] for doc in _documents(app) if doc["kind"] == "ConfigMap"}
    whole = [data[item["configMapRef"]["name"]] for item in container.get("envFrom", [])]
    return {item["name"] for item in container.get("env", [])}.union(*whole)


@pytest.mark.parametrize("app", APPS)
def test_settings_and_addresses_are_read_from_variables_that_exist(app: str) -> None:
    """What the model reads from env stands in the manifest, so that changing it there really changes the behaviour."""
    model = load(App, PLAYBOOKS / "apps" / app / "app.yaml")
    deployments = _deployments(app)
    for workload, service in model.services.items():
        deployment = deployments[workload.split("/")[1]]
        env = {name for container in _containers(deployment) for name in _variables(app, container)}
        for operation in service.operations.values():
            for call in operation.calls:
                read = model.programs[service.program].reads if service.program else ()
                known = call.address.env in env or call.address.file in read or call.address.default is not None
                assert known, (workload, call.address)
                numbers = (call.timeout_s, call.retries, call.retry_budget)
                assert {n.env for n in numbers if isinstance(n, Setting)} <= env


@pytest.mark.parametrize("app", APPS)
def test_an_earlier_revision_comes_without_pods(app: str) -> None:
    """The playbook makes the earlier release by rewriting the one line that says how many pods a workload has."""
    for file in (PLAYBOOKS / "apps" / app / "manifests").glob("*.yaml"):
        for text in file.read_text().split("\n---\n"):
            if re.search(r"^kind: Deployment$", text, re.MULTILINE):
                assert len(re.findall(r"^  replicas: \d+$", text, re.MULTILINE)) == 1, file.name


def test_checkout_has_room_for_exactly_one_more_pod() -> None:
    """On three nodes checkout can be scaled from two to three and no further: one pod per node, and a CPU limit of one core."""
    spec = _deployments("astronomy-shop")["checkout"]["spec"]
    (term,) = spec["template"]["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchLabels"] == spec["selector"]["matchLabels"]
    assert spec["replicas"] == 2
    assert spec["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "1"


def test_the_shop_serves_the_fifteen_public_flags_all_off() -> None:
    """flagd-config holds the public flags and one of ours, each with its default variant off."""
    (config,) = [doc for doc in _documents("astronomy-shop") if doc["metadata"]["name"] == "flagd-config"]
    flags = yaml.safe_load(config["data"]["demo.flagd.json"])["flags"]
    assert len(flags) == 16
    assert "seasonalBanner" in flags
    assert {flag["defaultVariant"] for flag in flags.values()} == {"off"}


@pytest.mark.parametrize("app", APPS)
def test_service_levels_that_people_read_are_those_that_are_graded(app: str) -> None:
    """configmap/slo-policy, where the app has one, says for every journey what app.yaml says."""
    graded = load(App, PLAYBOOKS / "apps" / app / "app.yaml").slo
    for policy in (doc for doc in _documents(app) if doc["metadata"]["name"] == "slo-policy"):
        read = yaml.safe_load(policy["data"]["slo.yaml"])["journeys"]
        levels = {name: (level["success"], level.get("p99_ms")) for name, level in read.items()}
        assert levels == {name: (level.success, level.p99_ms) for name, level in graded.items()}
