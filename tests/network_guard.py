"""Runs a Python program that dies at the first attempt to reach a network, and so do all processes it starts.

python tests/network_guard.py -m cli.main ask "…"

The kernel itself watches (seccomp), so compiled libraries are watched too: whoever opens an internet socket, or the
netlink socket with which a name look-up begins, is ended by SIGSYS.
"""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import struct
import sys

_SYSCALL_SOCKET = {"x86_64": 41, "aarch64": 198}
_FORBIDDEN = (socket.AF_INET, socket.AF_INET6, 16)  # 16 is AF_NETLINK

_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _FIRST_ARGUMENT = 0, 16  # where they stand in struct seccomp_data
_KILL, _ALLOW = 0x80000000, 0x7FFF0000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def forbid_network() -> None:
    """For this process and all that come of it; there is no way back."""
    families = len(_FORBIDDEN)
    steps = [
        _instruction(_LOAD, _NUMBER),
        _instruction(_JUMP_IF_EQUAL, _SYSCALL_SOCKET[platform.machine()], 0, families + 1),
        _instruction(_LOAD, _FIRST_ARGUMENT),
        *(_instruction(_JUMP_IF_EQUAL, family, families - at, 0) for at, family in enumerate(_FORBIDDEN)),
        _instruction(_RETURN, _ALLOW),
        _instruction(_RETURN, _KILL),
    ]
    code = ctypes.create_string_buffer(b"".join(steps))
    program = _Program(len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "the kernel does not take the filter")


def guarded(*arguments: str | bytes) -> list[str | bytes]:
    """The command line of a Python program under the guard. -I and -S: nothing but the guard itself is loaded twice."""
    return [sys.executable, "-I", "-S", __file__, *arguments]


if __name__ == "__main__":
    forbid_network()
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
