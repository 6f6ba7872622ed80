"""Protobuf bodies become the JSON that the same client would have sent.

The vectors are round-trip samples of the public Go module k8s.io/api v0.34.1 (Apache-2.0).
"""

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.kube.protobuf import decode, message_of

VECTORS: dict[str, Any] = json.loads(gzip.decompress((Path(__file__).parent / "protobuf_vectors.json.gz").read_bytes()))


@pytest.mark.parametrize("name", VECTORS)
def test_every_field_is_decoded(name: str) -> None:
    """Objects with all fields set decode to their JSON twins."""
    raw, expected = VECTORS[name]
    assert decode(base64.b64decode(raw)) == expected


def test_meta_kinds_are_the_same_in_every_group() -> None:
    """DeleteOptions is meta/v1, whatever group the envelope names."""
    assert message_of("policy/v1", "DeleteOptions") == "apimachinery.pkg.apis.meta.v1.DeleteOptions"


def _envelope(version: bytes, kind: bytes, raw: bytes) -> bytes:
    meta = b"\x0a" + bytes([len(version)]) + version + b"\x12" + bytes([len(kind)]) + kind
    return b"k8s\x00\x0a" + bytes([len(meta)]) + meta + b"\x12" + bytes([len(raw)]) + raw


def test_go_zero_values_are_dropped_and_pointers_kept() -> None:
    """replicas: 0 is a pointer in Go and stays, paused: false and minReadySeconds: 0 go, negative numbers are signed."""
    spec = b"\x08\x00\x28\x00\x38\x00\x30" + b"\xff" * 9 + b"\x01"
    made = decode(_envelope(b"apps/v1", b"Deployment", b"\x12" + bytes([len(spec)]) + spec))
    assert made == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {"replicas": 0, "revisionHistoryLimit": -1},
    }


@pytest.mark.parametrize("raw", [b"", b"{}", b"k8s\x00\x0a\xff", _envelope(b"v1", b"Nosuch", b"")])
def test_what_is_no_envelope_is_a_value_error(raw: bytes) -> None:
    """Other bytes, cut envelopes and unknown kinds are refused with a reason."""
    with pytest.raises(ValueError, match="protobuf"):
        decode(raw)


@given(st.binary(max_size=60))
def test_damage_never_escapes_as_another_error(noise: bytes) -> None:
    """Any bytes inside an envelope decode or are refused; nothing else is raised."""
    try:
        decode(_envelope(b"v1", b"Pod", noise))
    except ValueError:
        return
