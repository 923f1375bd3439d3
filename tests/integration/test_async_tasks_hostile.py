"""Processes that forge what we read: whatever their memory says, the read is bounded, and gives tasks or a gap.

A real process's memory is recorded once; then words of it are replaced: by other addresses of its own (cycles, types that are none), by wild ones,
by sizes of gigabytes.
"""

import bisect
import os
import signal
import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import starting, wait_for
from pythons import VERSIONS, find_python

from ray_rl_debug.collect.async_tasks import memory, reader
from ray_rl_debug.model.snapshot import AsyncTask, Gap

pytestmark = pytest.mark.integration

PROGRAM = Path(__file__).with_name("async_program.py")
LIMIT_S = 0.5
NEAR = 64
"""Recorded pieces that overlap begin at most so many places apart."""
SIZES = (0, 1, 2, 7, 255, 1 << 16, 1 << 20, (1 << 26) - 1, 1 << 31, (1 << 32) - 1, (1 << 40) - 1, (1 << 62) + 1, 1 << 63, (1 << 64) - 1)
EXAMPLES = int(os.environ.get("RAYRL_DEBUG_EXAMPLES", "60"))

start = pytest.fixture(starting, name="start", scope="module")


class Recorder:
    """A source that keeps what was read from it."""

    def __init__(self, pid):
        self._inner = memory.ProcessSource(pid)
        self.maps = self._inner.mappings()
        self.pieces = {}

    def mappings(self):
        return self.maps

    def pread(self, size, address):
        data = self._inner.pread(size, address)
        if len(data) > len(self.pieces.get(address, b"")):
            self.pieces[address] = data
        return data


class Forged:
    """What was recorded, with some words replaced."""

    def __init__(self, maps, pieces, forged):
        self._maps, self._forged = maps, forged
        self._words = sorted(forged)
        self._pieces, self._starts = pieces, sorted(pieces)

    def mappings(self):
        return self._maps

    def pread(self, size, address):
        if size < 0 or size > memory.MAX_READ:
            raise ValueError("size")
        for base in reversed(self._starts[max(0, bisect.bisect_right(self._starts, address) - NEAR) : bisect.bisect_right(self._starts, address)]):
            data = self._pieces[base]
            if address < base + len(data):
                return self._changed(address, bytearray(data[address - base : address - base + size]))
        raise OSError("never seen")

    def _changed(self, address, found):
        end = address + len(found)
        for word in self._words[bisect.bisect_right(self._words, address - 8) : bisect.bisect_left(self._words, end)]:
            raw, at = self._forged[word].to_bytes(8, "little"), word - address
            found[max(at, 0) : at + 8] = raw[max(-at, 0) : 8 - max(0, at + 8 - len(found))]
        return bytes(found)


class Image:
    """A recorded process: its pieces, and the words that the reader looked at."""

    def __init__(self, pid, monkeypatch):
        words = set()
        for name in ("word", "read", "is_still"):
            original = getattr(memory.Memory, name)

            def noted(self, address, second=8, name=name, original=original):
                size = len(second) if name == "is_still" else second
                words.update(range(address & -8, address + min(size, 4096), 8))
                return original(self, address) if name == "word" else original(self, address, second)

            monkeypatch.setattr(memory.Memory, name, noted)
        self.source = Recorder(pid)
        self.tasks, gap = reader.read_from(self.source, pid, deadline_s=30, max_tasks=1000)
        monkeypatch.undo()
        assert gap is None and len(self.tasks) > 20
        self.words = sorted(words)
        self.pieces = self.source.pieces

    def read(self, forged, deadline_s=LIMIT_S):
        source = Forged(self.source.maps, self.pieces, {self.words[i % len(self.words)]: value for i, value in forged})
        began = time.process_time()
        tasks, gap = reader.read_from(source, 1, deadline_s=deadline_s, max_tasks=1000, proc=Path("/nonexistent"))
        assert time.process_time() - began < deadline_s + 0.5  # of the processor: the machine may be busy with others
        return tasks, gap


@pytest.fixture(scope="module", params=[v for v in VERSIONS if find_python(v)])
def image(request, start, tmp_path_factory):
    path = tmp_path_factory.mktemp("image") / "truth"
    child = start(find_python(request.param), PROGRAM, path, ready=path)
    child.send_signal(signal.SIGSTOP)
    wait_for(lambda: Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", "it does not stop")
    with pytest.MonkeyPatch.context() as patch:
        return Image(child.pid, patch)


def check(tasks, gap):
    """Something that can be kept, sent and shown; or a gap."""
    assert gap is None or isinstance(gap, Gap)
    for task in tasks or ():
        assert len(task.chain) <= 200
        assert all(len(f.function) < 1024 and f.function.isprintable() for f in task.chain)
    data = msgspec.json.encode(tasks or ())
    assert len(msgspec.json.decode(data, type=tuple[AsyncTask, ...])) == len(tasks or ())


def test_the_recorded_memory_gives_the_same_tasks(image):
    tasks, gap = image.read([], deadline_s=60)
    assert gap is None
    assert [(t.name, t.chain) for t in tasks] == [(t.name, t.chain) for t in image.tasks]


@given(data=st.data())
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
def test_forged_words(image, data):
    values = st.one_of(
        st.integers(0, len(image.words) - 1).map(lambda i: image.words[i]),
        st.sampled_from(SIZES),
        st.sampled_from([t.address for t in image.tasks]),
        st.integers(0, (1 << 64) - 1),
    )
    forged = data.draw(st.lists(st.tuples(st.integers(0, len(image.words) - 1), values), min_size=1, max_size=60))
    check(*image.read(forged))


@pytest.mark.parametrize("value", SIZES[1::4])
def test_every_word_of_the_tasks_is_a_size(image, value):
    """Each field of each task in its turn: states, counts and pointers alike."""
    at = {word: i for i, word in enumerate(image.words)}
    of_tasks = [at[w] for t in image.tasks[:3] for w in range(t.address, t.address + 200, 8) if w in at]
    for index in of_tasks[::3]:
        check(*image.read([(index, value)]))
    check(*image.read([(index, value) for index in of_tasks]))


def test_every_task_awaits_itself_or_the_next(image):
    """Coroutines and waiters that lead in circles."""
    at = {word: i for i, word in enumerate(image.words)}
    addresses = [t.address for t in image.tasks]
    for shift in (0, 1):
        forged = []
        for i, address in enumerate(addresses):
            other = addresses[(i + shift) % len(addresses)]
            forged += [(at[w], other) for w in range(address + 16, address + 200, 8) if w in at]
        check(*image.read(forged))


def test_a_task_whose_coroutine_has_become_another_object_is_none(image):
    at = {word: i for i, word in enumerate(image.words)}
    one, other = image.tasks[:2]
    for index in [at[w] for w in range(one.address + 16, one.address + 200, 8) if w in at]:
        tasks, _ = image.read([(index, other.loop)])
        assert [t.name for t in tasks or () if [f.function for f in t.chain] == ["?"]] == []


OWN_KIND = """
import asyncio, collections.abc, sys
class Own(collections.abc.Coroutine):
    def __init__(self): self.future = asyncio.get_running_loop().create_future()
    def send(self, value): self.future._asyncio_future_blocking = True; return self.future
    def throw(self, *error): raise StopIteration
    def __await__(self): return iter(self.future)
async def main():
    own = asyncio.get_running_loop().create_task(Own(), name="own")
    await asyncio.sleep(0)
    open(sys.argv[1], "w").close()
    await own
asyncio.run(main())
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_a_coroutine_of_the_programs_own_class_is_still_a_task(version, start, tmp_path):
    python = find_python(version)
    if python is None:
        pytest.skip(f"no CPython {version} on this machine")
    child = start(python, "-S", "-E", "-c", OWN_KIND, tmp_path / "ready", ready=tmp_path / "ready")
    tasks, gap = reader.read_async_tasks(child.pid, deadline_s=30)
    assert gap is None
    assert [f.function for f in {t.name: t for t in tasks}["own"].chain] == ["?"]


def test_nothing_but_noise(image):
    check(*image.read([(i, (i * 0x9E3779B97F4A7C15) & ((1 << 64) - 1)) for i in range(len(image.words))]))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_program_that_only_looks_like_python(start, tmp_path):
    """``_PyRuntime`` is there, and all behind it is zeros."""
    ready = tmp_path / "ready"
    code = "import ctypes, sys, time; r = ctypes.c_char.in_dll(ctypes.pythonapi, '_PyRuntime'); open(sys.argv[1], 'w').close();"
    code += "b = b'\\0' * 64; m = ctypes.memset; s = time.sleep; m(ctypes.addressof(r), 0, 64); s(1000)"
    child = start(sys.executable, "-c", code, ready, ready=ready)
    tasks, gap = reader.read_async_tasks(child.pid)
    assert tasks in (None, ()) and (gap is None or isinstance(gap, Gap))
