"""Threads play and log; a handler has warnings uploaded by a thread of its own before it goes on."""

from __future__ import annotations

import concurrent.futures
import logging
import threading

import kit

log = logging.getLogger("run")


class Uploads(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.uploader = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="upload")

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            self.uploader.submit(self.upload, record.getMessage(), record.args).result()

    def upload(self, text: str, args: object) -> None:
        kit.work(0.6)
        (kit.folder() / "uploaded").write_text(text)
        if "twice" in text:
            log.info("uploaded again")


def play(number: int) -> None:
    while True:
        kit.work(0.7)
        log.info("player %d is through", number)


if __name__ == "__main__":
    kit.begin()
    log.setLevel(logging.INFO)
    log.addHandler(Uploads())
    for number in range(2):
        threading.Thread(target=play, args=(number,), daemon=True, name=f"player-{number}").start()
    for step in range(1, 10**6):
        kit.work(0.5)
        log.warning("step %d is bad twice" if kit.differs(step) else "step %d is bad", step)
        kit.step(step)
