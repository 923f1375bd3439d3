"""Programs whose processes look for each other, or hand work to each other."""

from __future__ import annotations

import multiprocessing as mp
import os
import random
import selectors
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

from parts import FOLDER, START, burn


def engine_of_versions():
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.path.join(FOLDER, "engine.sock"))
    server.listen()
    version = 0
    while True:
        connection, _ = server.accept()
        with connection:
            wanted = int(connection.recv(16))
            while version < wanted:
                try:
                    version = int(Path(FOLDER, "version").read_text())
                except (OSError, ValueError):
                    pass
                if version < wanted:
                    time.sleep(2)
            connection.sendall(b"ok")


def rollout():
    n = 0
    while True:
        n += 1
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(os.path.join(FOLDER, "engine.sock"))
            s.sendall(str(n).encode())
            s.recv(2)
        time.sleep(0.5)


def weights_by_file():
    """An engine looks for the next version in a file, while a rollout waits for its answer."""
    subprocess.Popen([sys.executable, START, "engine_of_versions"])
    time.sleep(1)
    subprocess.Popen([sys.executable, START, "rollout"])
    n = 0
    while True:
        n += 1
        for _ in range(4):
            time.sleep(9)
            burn()
        Path(FOLDER, "v.tmp").write_text(str(n))
        os.replace(os.path.join(FOLDER, "v.tmp"), os.path.join(FOLDER, "version"))


def worker():
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.path.join(FOLDER, "head.sock"))
    while s.recv(1):
        for _ in range(3):
            time.sleep(random.uniform(8, 14))
            burn(100000)
        s.sendall(b"r")


def head():
    """A head selects over the sockets of workers that simulate for long."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.path.join(FOLDER, "head.sock"))
    server.listen()
    ps = [subprocess.Popen([sys.executable, START, "worker"]) for _ in range(3)]
    s = selectors.DefaultSelector()
    for _ in ps:
        c, _ = server.accept()
        c.sendall(b"t")
        s.register(c, selectors.EVENT_READ)
    while True:
        for key, _ in s.select():
            key.fileobj.recv(1)
            key.fileobj.sendall(b"t")


def pipeline():
    """A chain of programs of the shell is slow in its middle."""
    while True:
        p = subprocess.Popen(["sh", "-c", "seq 1 6 | while read n; do sleep 9; echo $n; done | sort -n | head -n 3"], stdout=subprocess.PIPE)
        p.stdout.read()
        p.wait()


def claims(n):
    while True:
        c = sqlite3.connect(os.path.join(FOLDER, "jobs.db"), timeout=30)
        row = c.execute("select id from jobs where state = 0 limit 1").fetchone()
        if row is not None:
            c.execute("update jobs set state = 1 where id = ?", row)
            c.commit()
            for _ in range(5):
                time.sleep(8)
                burn(80000)
            c.execute("update jobs set state = 2 where id = ?", row)
            c.commit()
        c.close()
        if row is None:
            time.sleep(8)


def jobs():
    """Workers look for jobs in a database, and the driver for their end."""
    c = sqlite3.connect(os.path.join(FOLDER, "jobs.db"))
    c.execute("create table jobs (id integer primary key, state int)")
    c.commit()
    for n in range(2):
        mp.get_context("spawn").Process(target=claims, args=(n,)).start()
    while True:
        c.executemany("insert into jobs (state) values (?)", [(0,)] * 4)
        c.commit()
        while c.execute("select count(*) from jobs where state < 2").fetchone()[0]:
            c.commit()
            time.sleep(3)


def prefetch():
    """Threads read a slow disk; the main thread waits for them by a condition."""
    items, condition = ([], threading.Condition())

    def read():
        while True:
            for _ in range(2):
                time.sleep(random.uniform(8, 16))
            with condition:
                items.append(1)
                condition.notify()

    for n in range(2):
        threading.Thread(target=read, name=f"reader-{n}", daemon=True).start()
    while True:
        with condition:
            while not items:
                condition.wait()
            items.pop()
        burn()


def play(n):
    for _ in range(3):
        time.sleep(random.uniform(5, 11))
        burn(60000)
    return n


def replaced():
    """A pool replaces its workers after each task."""
    with mp.get_context("spawn").Pool(2, maxtasksperchild=1) as pool:
        while True:
            for _ in pool.imap_unordered(play, range(4)):
                pass
