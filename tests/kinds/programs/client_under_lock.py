"""A rollout has one client of its reward server, with a lock around it: two threads score, and a third one, which needs no server, plays on.

The main thread waits for the scores of a batch. The server checks answers by a program that it starts.
"""

from __future__ import annotations

import queue
import socket
import subprocess
import sys
import threading

import kit

CHECK = "import sys; open(sys.argv[1]).read() if len(sys.argv) > 1 else print('good')"
scores: queue.Queue[str] = queue.Queue()
answers: queue.Queue[str] = queue.Queue()


class Reward:
    def __init__(self, port: int) -> None:
        self.lock = threading.Lock()
        self.connection = socket.create_connection(("127.0.0.1", port))

    def score(self, answer: str) -> str:
        with self.lock:
            self.connection.sendall(answer.encode())
            return self.connection.recv(100).decode()


def serve() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    kit.mark("server", port=listener.getsockname()[1])
    client, _ = listener.accept()
    for step in range(1, 10**6):
        client.recv(100)
        kit.work(0.3)
        command = [sys.executable, "-c", CHECK, *([kit.fifo("answers")] if kit.differs(step) else [])]
        checker = subprocess.Popen(command, stdout=subprocess.PIPE)
        kit.mark("checker", pid=checker.pid)
        client.sendall(checker.communicate()[0])


def score_all(reward: Reward) -> None:
    while True:
        scores.put(reward.score(answers.get()))


def play() -> None:
    while True:
        kit.work(0.3)
        (kit.folder() / "game").write_text("played")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    reward = Reward(kit.until_there("server")["port"])
    for target, arguments in ((score_all, (reward,)), (score_all, (reward,)), (play, ())):
        threading.Thread(target=target, args=arguments, daemon=True).start()
    for step in range(1, 10**6):
        for number in range(4):
            answers.put(f"answer {number}")
        for _ in range(4):
            scores.get()
        kit.step(step)
