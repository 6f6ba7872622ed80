"""Differences of specs are printed as a Go program prints the server's structures."""

import pytest

from itbench.kube.kinds.diff import diff_pods, diff_structures
from itbench.kube.kinds.structures import _TABLE, _split, structure


@pytest.mark.parametrize("kind", sorted(_TABLE))
def test_every_structure_is_printed_from_nothing(kind: str) -> None:
    """Empty values of all kinds are known, and every structure named by another is one."""
    shown = structure({}, kind)
    assert list(shown) == [_split(field)[0] for field in _TABLE[kind].split()]
    inner = {_split(field)[2] for field in _TABLE[kind].split()}
    assert inner - {"", "LabelSelector"} <= set(_TABLE)


def test_a_changed_field_is_shown_between_its_neighbours() -> None:
    """Three lines of context, fields in the order of the structure, absent ones as null."""
    text = diff_pods({"restartPolicy": "Always"}, {"restartPolicy": "Never"})
    assert text.splitlines() == [
        "@@ -3,7 +3,7 @@",
        '  "InitContainers": null,',
        '  "Containers": null,',
        '  "EphemeralContainers": null,',
        '- "RestartPolicy": "Always",',
        '+ "RestartPolicy": "Never",',
        '  "TerminationGracePeriodSeconds": null,',
        '  "ActiveDeadlineSeconds": null,',
        '  "DNSPolicy": "",',
    ]


def test_host_fields_are_part_of_the_security_context() -> None:
    """The internal structure keeps them there."""
    assert '+  "HostNetwork": true,' in diff_pods({}, {"hostNetwork": True}).splitlines()


def test_equal_structures_have_no_difference() -> None:
    """Nothing is printed of nothing, whatever the order of keys."""
    one, other = {"nodeSelector": {"a": "1", "b": "2"}}, {"nodeSelector": {"b": "2", "a": "1"}}
    assert diff_structures(one, other, "PodSpec") == ""
