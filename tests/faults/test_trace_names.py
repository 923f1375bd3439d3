"""Traces whose names need care in addresses and in shells."""

from __future__ import annotations

import os
import shlex
import urllib.request
from pathlib import Path

import pytest

from ray_rl_debug.timeline.serve import how_to_open, served


@pytest.mark.parametrize("name", [b"run 1.pftrace", b"a&b#c?d%20.pftrace", b"caf\xe9.pftrace", "跑.pftrace".encode(), b"it's.pftrace"])
def test_a_trace_is_opened_whatever_its_name(tmp_path: Path, name: bytes) -> None:
    """The name of a trace holds a space, signs that mean something in an address, or bytes that are no letters.
    The address that ``--open`` prints has no space in it and gives the file, and the command that we print can be pasted."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    path.write_bytes(b"trace")
    with served(path, port=0) as (url, fetched):
        address = url.partition("url=")[2]
        assert address.isascii() and not set(" #?&%") & set(address)
        with urllib.request.urlopen(address, timeout=10) as answer:
            assert answer.read() == b"trace"
        assert fetched.wait(10)
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(address.rpartition("/")[0] + "/other.pftrace", timeout=10)
    assert shlex.split(how_to_open(path)[1])[-1] == str(path)
