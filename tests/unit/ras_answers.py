"""Answers of NCCL RAS, as JSON of 2.28 (commas missing) and later, and as text; and a server that speaks its protocol."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any


def rank(number: int, counts: Mapping[str, int], *, host: str = "10.0.0.1", pid: int | None = None, abort: bool = False) -> dict[str, Any]:
    return {
        "rank": number,
        "host": host,
        "pid": 1000 + number if pid is None else pid,
        "cuda_dev": number,
        "nvml_dev": number,
        "status": {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": abort},
        "collective_counts": dict(counts),
    }


def lost(number: int, *, dead: bool, host: str = "10.0.0.1", pid: int | None = None) -> dict[str, Any]:
    return {
        "rank": number,
        "host": host,
        "pid": 1000 + number if pid is None else pid,
        "cuda_dev": number,
        "nvml_dev": number,
        "status": {"unresponsive": True, "considered_dead": dead},
    }


def answer(ranks: Sequence[dict[str, Any]], missing: Sequence[dict[str, Any]] = (), *, hash_: str = "0xabc123", more: Sequence[Any] = ()) -> bytes:
    one = {
        "hash": hash_,
        "secondary_hash": "0x1:0x2",
        "size": len(ranks) + len(missing),
        "ranks_count": len(ranks),
        "missing_ranks_count": len(missing),
        "ranks": list(ranks),
        "missing_ranks": list(missing),
    }
    plain = {"nccl_version": "2.28.9", "cuda_runtime_version": 12080, "timestamp": "now", "communicators_count": 1 + len(more)}
    return json.dumps({**plain, "communicators": [one, *more], "ras": {"collection_time_sec": 0.002, "timeouts_count": 0}}, indent=2).encode()


def without_commas(data: bytes) -> bytes:
    """As NCCL 2.28 writes the entries of ``missing_ranks``: the comma after ``nvml_dev`` is not there."""
    head, _, tail = data.partition(b'"missing_ranks": [')
    return head + b'"missing_ranks": [' + re.sub(rb'("nvml_dev": \d+),', rb"\1", tail)


TEXT = """NCCL version 2.26.2 compiled with CUDA 12.6
CUDA runtime version 12060, driver version 12060

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      1          4            1          4        4

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         1         4         4         4   RUNNING  MISMATCH
    1         1         1         2         2         2   RUNNING  INCOMPLETE

Errors
======

DEAD
  1 job process considered dead (unreachable via the RAS network)
  Process 1007 on node 10.0.0.1 managing GPU 7

#1-0 (00000000deadbeef) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 1 -- GPU 7 managed by process 1007 on node 10.0.0.1

Warnings
========

#0-0 (fa93daea854b060b) MISMATCH
  Communicator ranks have different AllReduce operation counts
  3 ranks have launched up to operation 641
  Rank 2 has launched up to operation 640 -- GPU 2 managed by process 1002 on node 10.0.0.1

"""


@contextmanager
def serve(answer_of: Callable[[int], bytes], *, knows_json: bool = True, hang: bool = False, port: int = 0) -> Iterator[int]:
    """A RAS socket: its port, which several may share. ``answer_of`` gives the answer to the nth request; with ``hang`` the status never comes."""
    listener = socket.create_server(("127.0.0.1", port), reuse_port=True)
    listener.settimeout(0.05)
    ended = threading.Event()

    def talk() -> None:
        number = 0
        while not ended.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            connection.settimeout(20)
            with connection, connection.makefile("rb") as lines:
                for raw in lines:
                    line = raw.decode().strip().upper()
                    if line.startswith("CLIENT PROTOCOL "):
                        connection.sendall(b"SERVER PROTOCOL 2\n")
                    elif line.startswith("SET FORMAT"):
                        connection.sendall(b"OK\n" if knows_json else b"ERROR: Unknown command SET FORMAT json\n")
                    elif line.startswith("TIMEOUT "):
                        connection.sendall(b"OK\n")
                    elif line in ("STATUS", "VERBOSE STATUS"):
                        if hang:
                            ended.wait(20)
                        else:
                            connection.sendall(answer_of(number))
                        number += 1
                        break

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        ended.set()
        thread.join(5)
        listener.close()
