"""An evaluator asks the kernel (inotify) for news of a folder, over a connection a trainer asks it for the score of what it has saved.

Once the trainer removes the folder and makes it again: the evaluator still watches the one that is gone. In the twin the folder stays, and the
trainer works for long now and then. A second trainer thread writes summaries.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

import kit

IN_MOVED_TO = 0x80


def evaluate(port: int) -> None:
    libc = ctypes.CDLL(None)
    news = libc.inotify_init1(0)
    libc.inotify_add_watch(news, str(kit.folder() / "saved").encode(), IN_MOVED_TO)
    connection = socket.create_connection(("127.0.0.1", port))
    kit.mark("evaluator")
    while True:
        name = os.read(news, 4096)[16:].rstrip(b"\0")
        kit.work(0.3)
        connection.sendall(name.ljust(16))


def summaries() -> None:
    while True:
        time.sleep(1.5)
        (kit.folder() / "summary").write_text(str(time.time()))


def main() -> None:
    kit.begin()
    saved = kit.folder() / "saved"
    saved.mkdir()
    listener = socket.create_server(("127.0.0.1", 0))
    subprocess.Popen([sys.executable, __file__, "evaluate", str(listener.getsockname()[1])])
    connection, _ = listener.accept()
    kit.until_there("evaluator")
    threading.Thread(target=summaries, daemon=True, name="summaries").start()
    for step in range(1, 10**6):
        kit.mark("main")
        if kit.is_late(step):
            time.sleep(kit.LONG_S)
        if kit.differs(step):
            shutil.rmtree(saved)
            saved.mkdir()
        unfinished = kit.folder() / "unfinished"
        unfinished.write_text("weights")
        unfinished.rename(saved / f"step{step}")
        connection.recv(16)
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "evaluate":
        evaluate(int(sys.argv[2]))
    else:
        main()
