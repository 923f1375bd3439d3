"""A program all of whose names are not UTF-8: folder, open file, title, environment, thread, socket path, printed log.

Arguments: a folder, and a file to make when everything is in place.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import threading

ODD = b"caf\xe9"
ODD_THREAD = b"thr\xff\xe9"


def main() -> None:
    base, ready = os.fsencode(sys.argv[1]), sys.argv[2]
    folder = base + b"/" + ODD
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    kept = os.open(b"open-" + ODD, os.O_CREAT | os.O_RDWR)
    server = socket.socket(socket.AF_UNIX)
    server.bind(b"sock-" + ODD)
    server.listen(1)
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(b"\0" + ODD + b"-%d" % os.getpid())
    log = os.open(b"log-" + ODD, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(log, b"RuntimeError: received 0 items of ancdata \xe9\xff\n")
    os.dup2(log, 1)
    started = threading.Event()

    def wait() -> None:
        ctypes.CDLL(None).prctl(15, ODD_THREAD, 0, 0, 0)  # PR_SET_NAME of this thread
        started.set()
        threading.Event().wait()

    threading.Thread(target=wait, daemon=True).start()
    started.wait()
    ctypes.CDLL(None).prctl(15, b"com\xe9", 0, 0, 0)
    open(ready, "w").close()
    os.read(server.accept()[0].fileno(), kept)


if __name__ == "__main__":
    main()
