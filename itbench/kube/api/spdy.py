"""SPDY/3.1 framing without I/O: exec and attach of kubectl up to 1.29, port-forward of all versions; called by `streams`.

The caller feeds received bytes and gets events; bytes to send collect in `take()`. Window sizes of the peer are ignored, as
the Kubernetes implementation ignores them; received data is credited.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

DICTIONARY = (files("itbench.kube.data") / "spdy-dictionary.bin").read_bytes()
"""The header dictionary of SPDY/3; zlib itself refuses any other."""
CHUNK = 32 * 1024
MAX_HEADER_BYTES = 1024 * 1024
_SYN_STREAM, _SYN_REPLY, _RST, _SETTINGS, _PING, _GOAWAY, _HEADERS, _WINDOW = 1, 2, 3, 4, 6, 7, 8, 9
_FIN = 1


@dataclass(frozen=True, slots=True)
class Event:
    """Something the peer did to a stream: `open` with headers, `data`, `reset`; `fin` ends the peer's side."""

    kind: str
    stream: int
    headers: dict[str, str]
    data: bytes = b""
    fin: bool = False


class Spdy:
    """The server's end of one SPDY connection."""

    def __init__(self) -> None:
        self._in = bytearray()
        self._out = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)
        self.closed = False

    def take(self) -> bytes:
        """Bytes to send since the last call."""
        data = bytes(self._out)
        self._out.clear()
        return data

    def feed(self, data: bytes) -> Iterator[Event]:
        """Events of the complete frames received so far; raises ValueError when the bytes are no SPDY."""
        self._in += data
        while len(self._in) >= 8:
            head, tail = struct.unpack_from(">II", self._in)
            size = tail & 0xFFFFFF
            if len(self._in) < 8 + size:
                return
            body = bytes(self._in[8 : 8 + size])
            del self._in[: 8 + size]
            try:
                event = self._control(head, tail >> 24, body) if head >> 31 else self._data(head, tail >> 24, body)
            except (struct.error, zlib.error) as error:
                raise ValueError(f"damaged SPDY frame: {error}") from None
            if event is not None:
                yield event

    def _data(self, stream: int, flags: int, body: bytes) -> Event:
        if body:
            self._window(stream, len(body))
            self._window(0, len(body))
        return Event("data", stream, {}, body, bool(flags & _FIN))

    def _control(self, head: int, flags: int, body: bytes) -> Event | None:
        if (head >> 16) & 0x7FFF != 3:
            raise ValueError(f"not SPDY/3: version {(head >> 16) & 0x7FFF}")
        kind = head & 0xFFFF
        if kind == _SYN_STREAM:
            stream = struct.unpack_from(">I", body)[0] & 0x7FFFFFFF
            return Event("open", stream, self._headers(body[10:]), b"", bool(flags & _FIN))
        if kind == _HEADERS:
            self._headers(body[4:])  # keeps the shared compression state in step
        elif kind == _RST:
            return Event("reset", struct.unpack_from(">I", body)[0] & 0x7FFFFFFF, {})
        elif kind == _PING:
            self._frame(_PING, 0, body)
        elif kind == _GOAWAY:
            self.closed = True
        return None

    def _headers(self, block: bytes) -> dict[str, str]:
        raw = self._inflate.decompress(block, MAX_HEADER_BYTES)
        if self._inflate.unconsumed_tail:
            raise ValueError(f"SPDY headers of more than {MAX_HEADER_BYTES} bytes")
        (count,) = struct.unpack_from(">I", raw)
        at, parts = 4, []
        if count > len(raw):
            raise ValueError(f"{count} SPDY headers in {len(raw)} bytes")
        for _ in range(2 * count):
            (size,) = struct.unpack_from(">I", raw, at)
            parts.append(raw[at + 4 : at + 4 + size].decode())
            at += 4 + size
        return dict(zip(parts[::2], parts[1::2]))

    def _frame(self, kind: int, flags: int, body: bytes) -> None:
        self._out += struct.pack(">HHI", 0x8003, kind, flags << 24 | len(body)) + body

    def _window(self, stream: int, delta: int) -> None:
        self._frame(_WINDOW, 0, struct.pack(">II", stream, delta))

    def reply(self, stream: int) -> None:
        """Accept a stream that the peer opened."""
        block = self._deflate.compress(struct.pack(">I", 0)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        self._frame(_SYN_REPLY, 0, struct.pack(">I", stream) + block)

    def send(self, stream: int, data: bytes = b"", *, fin: bool = False) -> None:
        """Data for a stream; `fin` ends our side of it."""
        chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)] or [b""]
        for number, chunk in enumerate(chunks):
            last = fin and number == len(chunks) - 1
            if chunk or last:
                self._out += struct.pack(">II", stream, (_FIN if last else 0) << 24 | len(chunk)) + chunk

    def reset(self, stream: int, status: int = 5) -> None:
        """Abort a stream (5: cancel)."""
        self._frame(_RST, 0, struct.pack(">II", stream, status))
