"""Landlock through ctypes: what a process and its descendants may read, write and connect to, without root.

Standard library only and self-contained, because the warden loads this file by path in a bare interpreter.
Source of numbers and struct layouts: Linux `include/uapi/linux/landlock.h` (ABI 1 to 7) and the system call tables, where the
three calls have the same numbers on every architecture.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH, _NET_PORT = 1, 2
_PR_SET_NO_NEW_PRIVS = 38

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_SYM = 1 << 7, 1 << 8, 1 << 9, 1 << 10, 1 << 12
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_BIND_TCP, _CONNECT_TCP = 1, 2
_SCOPE_ABSTRACT_UNIX, _SCOPE_SIGNAL = 1, 2

_READ = EXECUTE | READ_FILE | READ_DIR
_WRITE = (
    _READ
    | WRITE_FILE
    | _REMOVE_DIR
    | _REMOVE_FILE
    | _MAKE_DIR
    | _MAKE_REG
    | _MAKE_SOCK
    | _MAKE_FIFO
    | _MAKE_SYM
    | _REFER
    | _TRUNCATE
)
_FILE_ONLY = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEV

TCP_ABI, SIGNAL_ABI, NEWEST_ABI = 4, 6, 7


def _call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(result)


def abi() -> int:
    """The Landlock ABI of this kernel; 0 when it is absent or switched off."""
    try:
        return _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    except OSError:
        return 0


def handled(version: int) -> tuple[int, int, int]:
    """What a rule set of this ABI governs: bits for files, for TCP, and for scopes (abstract sockets, signals)."""
    files = (1 << 13) - 1
    files |= _REFER if version >= 2 else 0
    files |= _TRUNCATE if version >= 3 else 0
    files |= _IOCTL_DEV if version >= 5 else 0
    tcp = _CONNECT_TCP | _BIND_TCP if version >= TCP_ABI else 0
    scopes = _SCOPE_ABSTRACT_UNIX | _SCOPE_SIGNAL if version >= SIGNAL_ABI else 0
    return files, tcp, scopes


def _ruleset(version: int) -> int:
    files, tcp, scopes = handled(version)
    data = struct.pack("=Q", files)
    data += struct.pack("=Q", tcp) if version >= TCP_ABI else b""
    data += struct.pack("=Q", scopes) if version >= SIGNAL_ABI else b""
    return _call(_CREATE_RULESET, data, ctypes.c_size_t(len(data)), ctypes.c_uint32(0))


def _allow_path(ruleset: int, path: str, access: int) -> None:
    """Allow a file, or a folder with all below. A link is not followed: a rule on its target would open what is hidden."""
    try:
        parent = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        mode = os.fstat(parent).st_mode
        if stat.S_ISLNK(mode):
            return
        allowed = access if stat.S_ISDIR(mode) else access & _FILE_ONLY
        rule = struct.pack("=Qi", allowed, parent)
        _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(parent)


def _allow_port(ruleset: int, port: int, access: int) -> None:
    rule = struct.pack("=QQ", access, port)
    _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_NET_PORT), rule, ctypes.c_uint32(0))


def restrict(version: int, read: Iterable[str], write: Iterable[str], ports: Iterable[int]) -> None:
    """Confine this process and all its descendants, for good.

    Args:
        version: ABI to use, from `abi()`; newer ones are used as the newest known here.
        read: files and folders that may be read and executed; those that do not exist are skipped.
        write: files and folders that may be read, executed and changed.
        ports: TCP ports that may be connected to and listened on (from ABI 4 on).

    Raises:
        OSError: the kernel refuses; the process must not go on then.
    """
    version = min(version, NEWEST_ABI)
    files, tcp, _ = handled(version)
    ruleset = _ruleset(version)
    try:
        for path in read:
            _allow_path(ruleset, path, _READ & files)
        for path in write:
            _allow_path(ruleset, path, (_WRITE | _IOCTL_DEV) & files)
        for port in ports if tcp else ():
            _allow_port(ruleset, port, tcp)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "cannot set no_new_privs")
        _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)
