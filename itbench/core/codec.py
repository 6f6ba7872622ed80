"""Plain data <-> bytes for checkpoints and snapshots. The format executes nothing.

Plain data: None, bool, int, float, str, bytes, list, tuple (comes back as list), dict with str or int keys, numpy array.
Large arrays that are mostly zero, such as the rings of the request flow, are kept as their other elements.
"""

import sys
import zlib
from typing import TYPE_CHECKING, Any

import msgpack

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ARRAY, _SPARSE = 1, 2
_LARGE = 4096
"""Elements from which it is worth looking for zeros."""


def _encode(value: object) -> Any:
    np = sys.modules.get("numpy")  # a control plane has no arrays and should not wait for numpy
    if np is None:
        raise TypeError(f"not plain data: {type(value).__name__}")
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        head = msgpack.packb([array.dtype.str, list(value.shape)])
        if (sparse := _sparse(array)) is not None:
            return msgpack.ExtType(_SPARSE, head + sparse)
        return msgpack.ExtType(_ARRAY, head + array.tobytes())
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"not plain data: {type(value).__name__}")


def _sparse(array: "NDArray[Any]") -> bytes | None:
    """A bit per element, then the elements that are not zero bit by bit (-0.0 is not); None where that saves little."""
    import numpy as np

    if array.size < _LARGE or array.dtype.kind not in "iuf" or array.dtype.itemsize not in (4, 8):
        return None
    flat = array.reshape(-1)
    kept = flat.view(f"u{array.dtype.itemsize}") != 0
    if np.count_nonzero(kept) > array.size // 2:
        return None
    packed: bytes = np.packbits(kept).tobytes() + flat[kept].tobytes()
    return packed


def _decode(code: int, data: bytes) -> Any:
    if code not in (_ARRAY, _SPARSE):
        raise ValueError(f"unknown extension {code}")
    import numpy as np

    unpacker = msgpack.Unpacker()
    unpacker.feed(data[:256])
    dtype, shape = unpacker.unpack()
    kind, body = np.dtype(dtype), memoryview(data)[unpacker.tell() :]
    if kind.hasobject:
        raise ValueError("arrays of objects are not plain data")
    if code == _ARRAY:
        return np.frombuffer(body, dtype=kind).reshape(shape).copy()
    array = np.zeros(shape, dtype=kind)
    bits = (array.size + 7) // 8
    kept = np.unpackbits(np.frombuffer(body[:bits], dtype=np.uint8), count=array.size).view(bool)
    array.reshape(-1)[kept] = np.frombuffer(body[bits:], dtype=kind)
    return array


def dumps(value: Any, *, level: int = 1) -> bytes:
    """Encode plain data; raises TypeError naming the first type that is not plain. Level 0 does not compress: for short lives."""
    return zlib.compress(msgpack.packb(value, default=_encode, use_bin_type=True), level=level)


def loads(data: bytes) -> Any:
    """Decode; raises ValueError when the bytes are damaged."""
    try:
        return msgpack.unpackb(zlib.decompress(data), ext_hook=_decode, strict_map_key=False, raw=False)
    except (zlib.error, msgpack.UnpackException, msgpack.ExtraData) as error:
        raise ValueError(f"damaged data: {error}") from error
