"""Pod Security levels: what is forbidden and in which words (recorded from Kubernetes 1.34), versions, audit, labels."""

from typing import Any

import pytest
from planes import fresh_plane

from itbench.kube.admission.security import violations
from itbench.kube.client import ApiError
from itbench.kube.requests import Options

MAIN = {"name": "c", "image": "i"}
PREFIX = "pod-security.kubernetes.io/"


def _pod(**spec: Any) -> dict[str, Any]:
    return {"containers": [MAIN], **spec}


def _container(**more: Any) -> dict[str, Any]:
    return {"containers": [{**MAIN, **more}]}


@pytest.mark.parametrize(
    ("spec", "texts"),
    [
        (_pod(), []),
        (
            _pod(securityContext={"appArmorProfile": {"type": "Unconfined"}}),
            ['forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")'],
        ),
        (
            _container(securityContext={"appArmorProfile": {"type": "Unconfined"}}),
            ['forbidden AppArmor profile (container "c" must not set AppArmor profile type to "Unconfined")'],
        ),
        (
            _container(livenessProbe={"httpGet": {"port": 80, "host": "1.2.3.4"}}),
            ['probe or lifecycle host (container "c" uses probe or lifecycle host "1.2.3.4")'],
        ),
        (
            _pod(os={"name": "windows"}, hostNetwork=True, securityContext={"windowsOptions": {"hostProcess": True}}),
            [
                "host namespaces (hostNetwork=true)",
                "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
            ],
        ),
    ],
)
def test_the_baseline_forbids_in_the_words_of_the_real_server(spec: dict[str, Any], texts: list[str]) -> None:
    """One text for each rule that is broken, in the order of the real plugin."""
    assert violations("baseline", spec) == texts


def test_windows_pods_need_not_set_what_only_linux_has() -> None:
    """The restricted level asks them for the user alone."""
    found = violations("restricted", _pod(os={"name": "windows"}))
    assert found == ['runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)']


def test_rules_hold_since_the_version_that_brought_them() -> None:
    """A namespace pinned to an older version is judged by its rules."""
    probing = _container(readinessProbe={"tcpSocket": {"port": 1, "host": "x"}})
    assert violations("baseline", probing, "v1.33") == []
    assert len(violations("baseline", probing, "v1.34")) == 1


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ({"enforce": "foo"}, 'enforce]: Invalid value: "foo": must be one of privileged, baseline, restricted'),
        ({"enforce-version": "v9"}, 'enforce-version]: Invalid value: "v9": must be "latest" or "v1.x"'),
    ],
)
def test_labels_that_name_no_level_are_refused(labels: dict[str, str], text: str) -> None:
    """On create; what is there already may stay."""
    marks = {PREFIX + key: value for key, value in labels.items()}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": marks}}
    with pytest.raises(ApiError) as refused:
        fresh_plane().client("test").create("namespaces", body)
    assert str(refused.value) == f'Namespace "n" is invalid: metadata.labels[{PREFIX}{text}'


def test_the_audit_level_leaves_a_note() -> None:
    """Nothing is refused, the audit log says what would have been."""
    plane = fresh_plane()
    client = plane.client("test")
    marks = {"labels": {PREFIX + "audit": "baseline"}}
    client.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", **marks}})
    plane.run(plane.now)
    notes: list[str] = []
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": _pod(hostPID=True)}
    plane.registry.create(plane.registry.table.named("pods"), pod, "n", Options(notes=notes))
    text = 'would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)'
    assert notes == [f"{PREFIX}audit-violations: {text}"]
