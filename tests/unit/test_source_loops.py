"""What a loop that pauses looks at, as its source tells."""

from __future__ import annotations

import ast
import textwrap

import pytest

from ray_rl_debug.collect.source_loops import brings, ended_by, gives_up, goes_round, looks_at, requests_bring, takes

HEAD = """
import os, time, ray
from pathlib import Path
BATCHES = []
LIMIT = 4
def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
class Pool:
    @property
    def ready(self):
        return self.connection.poll()
"""


def looks(body: str, head: str = "def take(self, size, path, pid, flags, n):") -> tuple[str, ...] | None:
    source = f"{HEAD}{head}\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "# here" in text)
    return looks_at(ast.parse(source), line)


@pytest.mark.parametrize(
    "body",
    [
        "while not BATCHES:\n    time.sleep(0.1)  # here\nreturn BATCHES.pop()",
        "while len(self.buffer) < size:\n    time.sleep(0.1)  # here\ndel self.buffer[:size]",
        "flags[n] = 1\nwhile min(flags) < n:\n    os.sched_yield()  # here",
        "while True:\n    if self.buffer:\n        return self.buffer.pop()\n    time.sleep(1)  # here",
        "while min(flags) < n:  # here\n    os.sched_yield()\nflags[n] = 1",
        "while len(self.buffer) >= LIMIT:\n    print('full')\n    time.sleep(0.1)  # here\nself.buffer.append(1)",
    ],
)
def test_a_loop_that_looks_at_variables_calls_nothing(body: str) -> None:
    assert looks(body) == ()


@pytest.mark.parametrize(
    ("body", "calls"),
    [
        ("while not path.exists():\n    time.sleep(0.1)  # here", {"exists"}),
        ("found = []\nwhile len(found) < size:\n    time.sleep(0.2)  # here\n    found = sorted(path.glob('*'))[:3]", {"glob"}),
        ("while is_alive(pid):\n    time.sleep(0.1)  # here", {"is_alive", "kill"}),
        ("while ray.get(self.buffer.batch.remote()) is None:\n    time.sleep(0.5)  # here", {"get", "remote"}),
        ("while True:\n    try:\n        return urlopen(path).status\n    except OSError:\n        time.sleep(1)  # here", {"urlopen"}),
        ("while True:\n    try:\n        with dial(path) as f:\n            return f.n\n    except:\n        time.sleep(1)  # here", {"dial"}),
        (
            "while True:\n    try:\n        os.close(os.open(path, 64))\n        break\n    except FileExistsError:\n        time.sleep(1)  # here",
            {"close", "open"},
        ),
        ("while not self.ready:\n    time.sleep(0.1)  # here", {"poll"}),
        ("while not self.stopping.is_set():\n    time.sleep(1)  # here", {"is_set"}),
    ],
)
def test_names_of_what_it_asks(body: str, calls: set[str]) -> None:
    assert set(looks(body) or ()) == calls


@pytest.mark.parametrize(
    "body",
    [
        "while True:\n    self.beat()\n    time.sleep(1)  # here",
        "time.sleep(1)  # here",
        "while not BATCHES:  # here\n    self.step()\nreturn BATCHES.pop()",
        "for _ in range(9):\n    if path.exists():\n        break\n    time.sleep(1)  # here",
        "end = time.monotonic() + 9\nwhile not path.exists() and time.monotonic() < end:\n    time.sleep(1)  # here",
        "while not path.exists():\n    if time.monotonic() > n:\n        raise TimeoutError\n    time.sleep(1)  # here",
        "tries = 0\nwhile not path.exists() and tries < 9:\n    tries += 1\n    time.sleep(1)  # here",
        "tries = 0\nwhile not path.exists():\n    tries += 1\n    if tries > 9:\n        raise TimeoutError\n    time.sleep(1)  # here",
        "while self.running:\n    time.sleep(1)  # here",
        "self.running = True\nself.begin()\nwhile self.running:\n    time.sleep(1)  # here\nself.end()",
        "while not BATCHES:\n    self.changed.wait()  # here\nreturn BATCHES.pop()",
        "while True:\n    task = ask('take')\n    if task is None:\n        time.sleep(0.5)  # here\n        continue\n    self.run(task)",
    ],
)
def test_who_goes_round_for_ever_gives_up_or_serves_looks_at_nothing(body: str) -> None:
    assert looks(body) is None


@pytest.mark.parametrize(
    ("body", "is_brought"),
    [
        ("if size:\n    LISTS[path].append(size)\n    self.changed.notify_all()\nwhile not LISTS[path]:\n    self.changed.wait()  # here", True),
        ("self.asked.append(n)\nself.changed.notify_all()\nself.changed.wait_for(lambda: n in self.answered)  # here", False),
        ("self.answered[n] = 1\nself.changed.wait_for(lambda: n in self.answered)  # here", True),
        ("self.jobs.put(n)\nreturn self.jobs.get()  # here", True),
        ("self.jobs.put(n)\nreturn self.answers.get()  # here", False),
        ("self.done.wait()  # here", False),
        ("self.done = flags\nself.done.wait()  # here", True),
        ("folder = self.folders.get()  # here\nself.run(folder)\nself.folders.put(folder)", False),
        ("if n:\n    return self.jobs.get()  # here\nself.jobs.put(n)", True),
        ("if n:\n    return self.jobs.get()  # here\nelse:\n    self.jobs.put(n)", True),
        ("while not self.jobs:\n    self.changed.wait()  # here\nself.jobs.append(n)", True),
        ("self.step()  # here", None),
    ],
)
def test_a_function_that_brings_what_it_waits_for(body: str, is_brought: bool | None) -> None:
    source = f"{HEAD}def handle(self, size, path, n, flags):\n{textwrap.indent(body, '    ')}\n"
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "# here" in text)
    assert brings(ast.parse(source), line) is is_brought


@pytest.mark.parametrize(
    ("body", "is_taken"),
    [
        ("while line := await reader.readline():\n    if n:\n        await asyncio.sleep(n)  # here\n    writer.write(line)", True),
        ("async for line in reader:\n    await asyncio.sleep(n)  # here", True),
        ("while True:\n    await asyncio.sleep(1)  # here\n    await self.beat()", False),
        ("while not self.ready:\n    await asyncio.sleep(1)  # here", False),
        ("await self.step()  # here", None),
    ],
)
def test_a_pause_with_a_piece_in_hand(body: str, is_taken: bool | None) -> None:
    source = f"{HEAD}async def pass_on(self, reader, writer, n):\n{textwrap.indent(body, '    ')}\n"
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "# here" in text)
    assert takes(ast.parse(source), line) is is_taken


@pytest.mark.parametrize(
    ("body", "is_round"),
    [
        ("while True:\n    time.sleep(0.5)  # here\n    del BATCHES[:-100]", True),
        ("while True:\n    if self.done:\n        break\n    time.sleep(0.5)  # here", False),
        ("for token in self.tokens:\n    time.sleep(0.5)  # here", False),
        ("while True:\n    for token in self.tokens:\n        time.sleep(0.5)  # here", False),
        ("self.step()  # here", None),
    ],
)
def test_who_goes_round_for_ever(body: str, is_round: bool | None) -> None:
    source = f"{HEAD}def serve(self):\n{textwrap.indent(body, '    ')}\n"
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "# here" in text)
    assert goes_round(ast.parse(source), line) is is_round


@pytest.mark.parametrize(
    ("body", "is_limited"),
    [
        ("while time.time() < end and not os.path.exists(path):\n    time.sleep(0.1)  # here", True),
        ("while not self.ready:\n    if time.monotonic() - began > n:\n        raise TimeoutError\n    time.sleep(0.5)  # here", True),
        ("while not self.ready:\n    time.sleep(0.5)  # here\nprint(time.time())", False),
        ("while not self.ready:\n    self.last = time.time()\n    time.sleep(0.5)  # here", False),
        ("if not self.ready:\n    time.sleep(0.5)  # here", False),
        ("self.step()  # here", None),
    ],
)
def test_who_gives_up_after_a_time(body: str, is_limited: bool | None) -> None:
    source = f"{HEAD}def wait_for_others(self, end, path, n, began):\n{textwrap.indent(body, '    ')}\n"
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "# here" in text)
    assert gives_up(ast.parse(source), line) is is_limited


CLASS = """
class Rollout:
    def __init__(self):
        self.stopped = False
    def run(self, n):
{body}
    def stop(self):
        self.stopped = True
    def end(self):
        self.over.set()
"""


@pytest.mark.parametrize(
    ("body", "methods"),
    [
        ("while not self.stopped:\n    time.sleep(0.2)  # here", ("stop",)),
        ("while not self.stopped:\n    if n:\n        self.play()\n    time.sleep(0.2)  # here\nself.stopped = False", ("stop",)),
        ("while not self.over.is_set():\n    time.sleep(0.2)  # here", ("end",)),
        ("while self.playing:\n    time.sleep(0.2)  # here", ()),
        ("while not self.stopped:\n    self.stopped = self.look()\n    time.sleep(0.2)  # here", None),
        ("while not self.stopped:\n    if n:\n        break\n    time.sleep(0.2)  # here", None),
        ("while not self.stopped and n:\n    time.sleep(0.2)  # here", None),
        ("while not n:\n    time.sleep(0.2)  # here", None),
        ("for _ in range(n):\n    time.sleep(0.2)  # here", None),
        ("time.sleep(0.2)  # here", None),
        ("while not self.stopped:\n    self.play()  # here", None),
    ],
)
def test_whose_call_ends_a_loop(body: str, methods: tuple[str, ...] | None) -> None:
    source = CLASS.format(body=textwrap.indent(body, " " * 8))
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "# here" in text)
    assert ended_by(ast.parse(source), line) == methods


@pytest.mark.parametrize(("changes", "is_counter"), [("self.running -= 1", True), ("self.running = False", False), ("running -= 1", False)])
def test_what_is_counted_elsewhere_is_no_flag(changes: str, is_counter: bool) -> None:
    """A signal may set a flag, and no more."""
    head = f"class Engine:\n  def generate(self):\n    {changes}\n  def drain(self):"
    assert (looks("while self.running:\n    time.sleep(0.1)  # here", head) == ()) is is_counter


ROUTED = """
async def following(request):
    async with changed:
        await changed.wait_for(lambda: version > after)  # here

{decorator}
async def publish(request):
    nonlocal version
    version = 3
    changed.notify_all()

app.add_routes([web.get("/following", following){more}])
"""


@pytest.mark.parametrize(
    ("decorator", "more", "is_brought"),
    [("", ', web.post("/publish", publish)', True), ('@app.post("/publish")', "", True), ("", "", False)],
    ids=["a route", "a decorated route", "a task"],
)
def test_what_another_request_brings(decorator: str, more: str, is_brought: bool) -> None:
    source = ROUTED.format(decorator=decorator, more=more)
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "# here" in text)
    assert requests_bring(ast.parse(source), line) is is_brought


HOLDS = """
class Bridge:
    async def ask(self, request):
        {before}
        {wait}  # here

    async def answer(self, request):
        {after}

    def routes(self, app):
        app.add_post("/ask", self.ask)
        app.add_post("/answer", self.answer)
"""


@pytest.mark.parametrize(
    ("before", "wait", "after", "is_brought"),
    [
        ("event = self.events[number]", "await event.wait()", "self.events[number].set()", True),
        ("self.pending[number] = future", "await future", "self.pending.pop(number).set_result(3)", True),
        ("self.pending[number] = future", "await asyncio.wait_for(future, 5)", "mine = self.pending.pop(number)\n        mine.set_result(3)", True),
        ("self.pending[number] = future", "await future", "self.others[number].set_result(3)", False),
    ],
    ids=["an event", "a future", "a future within a limit", "another future"],
)
def test_what_another_request_gives_to_an_object_of_this_one(before: str, wait: str, after: str, is_brought: bool) -> None:
    source = HOLDS.format(before=before, wait=wait, after=after)
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "# here" in text)
    assert requests_bring(ast.parse(source), line) is is_brought


@pytest.mark.parametrize(
    ("body", "is_brought"),
    [
        ("if word:\n    await jobs.put(word)\nelse:\n    word = await jobs.get()  # here", True),
        ("first = await free.get()  # here\nawait work(first)\nfree.put_nowait(first)", False),
        ("self.wanted[word] = 0\nawait told.wait_for(lambda: self.wanted[word])  # here", False),
        ("await work(word)  # here", None),
    ],
    ids=["another command", "lent and given back", "its own entry", "no wait"],
)
def test_what_another_command_of_the_same_function_brings(body: str, is_brought: bool | None) -> None:
    source = f"async def serve(self, word, jobs, free, told):\n{textwrap.indent(body, '    ')}\n"
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "# here" in text)
    assert requests_bring(ast.parse(source), line) is is_brought
