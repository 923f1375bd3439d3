"""Flight Recorder dumps as large as our own job scripts ask for."""

from __future__ import annotations

import json
import pickle
import re
import time

import pytest

from ray_rl_debug.collect import live_counters
from ray_rl_debug.doctor.settings import WANTED
from ray_rl_debug.formats import restricted_pickle
from ray_rl_debug.formats.flight_recorder import parse
from ray_rl_debug.slurm.job import Job
from ray_rl_debug.slurm.render import render

pytestmark = pytest.mark.integration

TENSORS = 200
"""Of one coalesced collective, as a sharded model of that many parameters makes them."""
OPCODES = 2100
"""Of torch's pickle for one such entry, counted with torch 2.13."""
JSON_BYTES = 5300
"""Of torch's JSON for one such entry."""


def asked_for() -> int:
    text = render(Job(framework="ray", command=("x",)))
    sizes = {int(n) for n in re.findall(r"TORCH_(?:FR|NCCL_TRACE)_BUFFER_SIZE=(\d+)", text)}
    assert len(sizes) == 1
    return sizes.pop()


def dump(count: int) -> dict[str, object]:
    sizes = [[4096, i] for i in range(TENSORS)]
    common = {
        "process_group": ["0", "default_pg"],
        "profiling_name": "nccl:_all_gather_base_coalesced",
        "input_sizes": sizes,
        "output_sizes": sizes,
        "input_dtypes": ["BFloat16"] * TENSORS,
        "output_dtypes": ["BFloat16"] * TENSORS,
        "state": "completed",
        "retired": True,
        "is_p2p": False,
        "pg_id": 0,
        "timeout_ms": 600000,
        "time_created_ns": 1795326279416135552,
    }
    return {
        "version": "2.10",
        "entries": [{**common, "record_id": i, "collective_seq_id": i + 1} for i in range(count)],
        "pg_config": {},
        "pg_status": {},
    }


def test_a_full_recorder_of_our_templates_is_read() -> None:
    """A job of our own template hangs with its Flight Recorder full of collectives of 200 tensors.
    The dump is within every limit of a live look, as JSON and as pickle, and all of its entries are read."""
    count = asked_for()
    assert count * JSON_BYTES < live_counters.MAX_BYTES
    assert count * OPCODES < restricted_pickle.MAX_OPCODES
    plain = dump(count)
    began = time.monotonic()
    for data in (json.dumps(plain).encode(), pickle.dumps(plain, protocol=2)):
        assert len(data) < live_counters.MAX_BYTES
        assert len(parse(data, "dump").entries) == count
    assert time.monotonic() - began < 60


def test_the_doctor_asks_for_what_the_templates_set() -> None:
    """The doctor tells people a size for the recorder.
    It is the one of our templates."""
    assert any(setting == f"TORCH_FR_BUFFER_SIZE={asked_for()}" for _, setting in WANTED)


@pytest.mark.parametrize("entries", [20_000])
def test_a_recorder_of_older_templates_is_within_the_limits_of_report(entries: int) -> None:
    """Jobs that run already have recorders ten times as large.
    Their dumps are still within the limits for saved files."""
    from ray_rl_debug.collect.flight_recorder import MAX_BYTES
    from ray_rl_debug.formats.flight_recorder import MAX_ENTRIES

    assert entries <= MAX_ENTRIES and entries * JSON_BYTES < MAX_BYTES and entries * OPCODES < restricted_pickle.MAX_OPCODES
