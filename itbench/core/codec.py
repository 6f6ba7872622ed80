"""Plain data <-> bytes for checkpoints and snapshots. The format executes nothing.

Plain data: None, bool, int, float, str, bytes, list, tuple (comes back as list), dict with str or int keys, numpy array.
"""

import zlib
from typing import Any

import msgpack
import numpy as np

_ARRAY = 1


def _encode(value: object) -> Any:
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        head = msgpack.packb([array.dtype.str, list(value.shape)])
        return msgpack.ExtType(_ARRAY, head + array.tobytes())
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"not plain data: {type(value).__name__}")


def _decode(code: int, data: bytes) -> Any:
    if code != _ARRAY:
        raise ValueError(f"unknown extension {code}")
    unpacker = msgpack.Unpacker()
    unpacker.feed(data[:256])
    dtype, shape = unpacker.unpack()
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise ValueError("arrays of objects are not plain data")
    return np.frombuffer(data[unpacker.tell() :], dtype=kind).reshape(shape).copy()


def dumps(value: Any) -> bytes:
    """Encode plain data; raises TypeError naming the first type that is not plain."""
    return zlib.compress(msgpack.packb(value, default=_encode, use_bin_type=True), level=1)


def loads(data: bytes) -> Any:
    """Decode; raises ValueError when the bytes are damaged."""
    try:
        return msgpack.unpackb(zlib.decompress(data), ext_hook=_decode, strict_map_key=False, raw=False)
    except (zlib.error, msgpack.UnpackException, msgpack.ExtraData) as error:
        raise ValueError(f"damaged data: {error}") from error
