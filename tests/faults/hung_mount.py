"""A file system that hangs: a FUSE server of a few read-only files, which at a word from us answers nothing any more.

Run as a script: ``hung_mount.py FOLDER NAME=TEXT...``; it prints ``ready``, and a line on its standard input silences it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR = 1, 2, 3, 14, 15, 17, 18, 25, 26, 27, 28, 29
INTERRUPT, DESTROY, BATCH_FORGET = 36, 38, 42
PARALLEL_DIROPS = 1 << 18
"""Without it the second who waits for a folder cannot even be killed."""
MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)


def can_mount() -> bool:
    return os.getuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK)


class HungMount:
    """A mounted folder."""

    def __init__(self, folder: Path, server: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self._server = server

    def silence(self) -> None:
        """From now on whoever touches a file there waits for ever."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(b"\n")
        self._server.stdin.flush()
        assert self._server.stdout.readline() == b"silent\n"


@contextlib.contextmanager
def hung_mount(folder: Path, files: Mapping[str, str]) -> Iterator[HungMount]:
    """Mount `files` at a folder; at the end everybody who waits there gets an error."""
    folder.mkdir()
    command = [sys.executable, __file__, str(folder), *(f"{name}={text}" for name, text in files.items())]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n", "it cannot be mounted"
        yield HungMount(folder, server)
    finally:
        server.kill()  # closes the connection: those who wait get an error
        server.wait()
        _libc.umount2(os.fsencode(folder), MNT_DETACH)
        for pipe in (server.stdin, server.stdout):
            assert pipe is not None
            pipe.close()


class _Server:
    def __init__(self, folder: str, files: list[tuple[str, bytes]]) -> None:
        self._files = files
        self._fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self._fd},rootmode=40000,user_id=0,group_id=0,allow_other"
        if _libc.mount(b"hung", os.fsencode(folder), b"fuse", 6, options.encode()) != 0:
            raise OSError(ctypes.get_errno(), "mount")
        self.is_silent = False

    def serve(self) -> None:
        while True:
            try:
                request = os.read(self._fd, 1 << 20)
            except OSError as e:
                if e.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                    continue  # the one who asked has gone
                return
            _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
            if opcode in (FORGET, BATCH_FORGET, INTERRUPT) or self.is_silent:
                continue
            error, body = self._answer(opcode, node, request[40:])
            with contextlib.suppress(OSError):
                os.write(self._fd, struct.pack("<IiQ", 16 + len(body), -error, unique) + body)

    def _answer(self, opcode: int, node: int, body: bytes) -> tuple[int, bytes]:
        if opcode == INIT:
            return 0, struct.pack("<IIIIHHII", 7, 31, 1 << 17, PARALLEL_DIROPS, 12, 9, 1 << 17, 1).ljust(64, b"\0")
        if opcode == LOOKUP:
            name = body.rstrip(b"\0").decode()
            found = next((i for i, (own, _) in enumerate(self._files) if own == name), None)
            return (errno.ENOENT, b"") if found is None else (0, struct.pack("<QQQQII", found + 2, 0, 0, 0, 0, 0) + self._attributes(found + 2))
        if opcode == GETATTR:
            return 0, struct.pack("<QII", 0, 0, 0) + self._attributes(node)
        if opcode in (OPEN, OPENDIR):
            return 0, struct.pack("<QII", node, 1, 0)  # nothing is cached
        if opcode == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return 0, self._files[node - 2][1][offset : offset + size]
        if opcode == STATFS:
            return 0, bytes(80)
        return (0, b"") if opcode in (READDIR, RELEASE, RELEASEDIR, FLUSH, DESTROY) else (errno.ENOSYS, b"")

    def _attributes(self, node: int) -> bytes:
        is_root = node == 1
        size = 0 if is_root else len(self._files[node - 2][1])
        mode = stat.S_IFDIR | 0o755 if is_root else stat.S_IFREG | 0o644
        return struct.pack("<QQQQQQIIIIIIIIII", node, size, 1, 1, 1, 1, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def main() -> None:
    server = _Server(sys.argv[1], [(name, text.encode()) for name, _, text in (a.partition("=") for a in sys.argv[2:])])
    threading.Thread(target=server.serve, daemon=True).start()
    print("ready", flush=True)
    for _ in sys.stdin:
        server.is_silent = True
        print("silent", flush=True)


if __name__ == "__main__":
    main()
