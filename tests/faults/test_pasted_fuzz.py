"""Stacks that people paste hold anything: each reader answers or passes, and a text costs time by its length only."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from counted_steps import steps
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ray_rl_debug.formats import blocks, flight_table
from ray_rl_debug.formats.pasted import (
    asyncio_tools,
    chains,
    commands,
    core_dumps,
    diffs,
    faulthandler,
    frames,
    gdb,
    glued,
    joined,
    kernel,
    labels,
    led,
    likely,
    lines,
    lone_names,
    loose,
    lsof,
    mixed,
    name_lines,
    paired_numbers,
    perf,
    places,
    prefixes,
    prose,
    ps,
    pyspy,
    pystack,
    said,
    symbols,
    torn,
    tracebacks,
    trees,
)
from ray_rl_debug.formats.pasted.boxes import Box
from ray_rl_debug.formats.pasted.classify import classified, classify, cut_frame
from ray_rl_debug.formats.pasted.columns import Columns
from ray_rl_debug.formats.pasted.cpp_traceback import CppTraceback
from ray_rl_debug.formats.pasted.read import read
from ray_rl_debug.formats.pasted.regions import lines_of
from ray_rl_debug.formats.ray_lists import read_lists
from ray_rl_debug.imports.build import FileDumps, build
from ray_rl_debug.model import codec

_HEAD = "Traceback (most recent call last):"
relaxed = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
READERS: dict[str, Callable[[str], Any]] = {
    "glued": lambda text: list(glued.apart([(1, text)])),
    "paired_numbers": paired_numbers.read,
    "trees": lambda text: list(trees.joined_lines([(1, text), (2, f" `-- {text}"), (3, f"  `-- {text}")])),
    "blocks": lambda text: list(blocks.documents(f'[\n {{"frames": [{text}\n]'.encode(errors="replace"))),
    "likely": lambda text: likely.telling_lines(text.encode(errors="replace"), lambda line: False),
    "chains": lambda text: (chains.clauses(text), chains.read(text), chains.read(f"TP0: `a → {text} → b`")),
    "asyncio_tools": lambda text: asyncio_tools.TaskReader().feed(text, 1),
    "faulthandler": faulthandler.read,
    "flight_table": lambda text: list(flight_table.documents(f"Rank 0  Rank 1\n------  ------\n{text} state=x\n{text}".encode(errors="replace"))),
    "frames": lambda text: (frames.read_frame(text), frames.placed_in("a.py", text), frames.placed_in("a.py", f"-> :3 {text}")),
    "gdb": gdb.read,
    "symbols": lambda text: (symbols.read(text), symbols.read(f"  | @ 0x10c3aafe7 {text}")),
    "kernel": lambda text: (kernel.read(text), kernel.pair(text), kernel.status(text)),
    "labels": lambda text: (labels.read(text), labels.parts(text), labels.ray_stack(text), commands.loop_of(text), commands.is_tool(text)),
    "cpp_traceback": lambda text: list(map(CppTraceback().feed, ("C++ Traceback (most recent call last):", f"0   {text}", text))),
    "core_dumps": lambda text: (core_dumps.read(text), core_dumps.read(f"#3 0x7f12ab34cd56 {text}")),
    "diffs": lambda text: list(diffs.sides(enumerate(f"--- a\n+++ b\n@@ -1 +1 @@\n{text}".split("\n"), 1))),
    "lines": lambda text: (lines.read_line(text), list(lines.read_lines(enumerate(f"#1 0x00007fa4 in f ({text}".split("\n"), 1)))),
    "loose": lambda text: (loose.place(text), loose.place(f"{text} a.py:3"), loose.dotted_name(text)),
    "joined": lambda text: (joined.read(text), joined.read(text, is_named=True), joined.names(text), joined.name_alone(text)),
    "led": lambda text: (led.read(text), led.read(f"rank 3: {text}"), led.clauses(f"Rank 0 is in {text}, rank 1 is in {text}")),
    "columns": lambda text: list(map(Columns().takes, ("| rank 0 | rank 1 |", f"| {text} | {text} |", text))),
    "mixed": lambda text: list(mixed.apart(enumerate(f'{_HEAD}\n{_HEAD}\n{text}\n  File "a.py", line 1, in f\n{text}'.split("\n"), 1))),
    "name_lines": name_lines.name_in,
    "places": lambda text: (places.one_frame(text), places.in_any_order(text)),
    "lsof": lambda text: (lsof.read(text), lsof.read(f"python 12 root 3uW REG 0,48 0 77 /{text}"), lsof.read(f"a 1 b {text} REG 0,1 1 2 /a")),
    "lone_names": lambda text: lone_names.find(text.encode(errors="replace")),
    "perf": perf.read,
    "prefixes": lambda text: (prefixes.learn(f"{text}\n{text}".encode(errors="replace"), lines.plain_lines), prefixes.writer(f"a{{{text}}}: ")),
    "ray_counts": lambda text: read_lists(f"    FUNC_OR_CLASS_NAME  STATE_COUNTS  TYPE\n0   f   {text}"),
    "ray_lists": lambda text: read_lists(f"    ACTOR_ID  CLASS_NAME  STATE\n 0  {text}"),
    "prose": lambda text: (
        prose.read(text.encode(errors="replace")),
        prose.read(f"- 3 ranks are stuck in `{text}` at `a.py:1`".encode(errors="replace")),
    ),
    "ps": lambda text: (ps.aux(text), ps.heading(text), ps.asked_columns(text), ps.row(text, ("PID", "STAT", "WCHAN", "CMD"))),
    "pyspy": lambda text: (pyspy.read(text), pyspy.frame_behind_head(text)),
    "pystack": pystack.read,
    "said": lambda text: (said.remark(text), said.unread(text, expected=True), said.count_in(text), said.numbers(text)),
    "torn": lambda text: list(torn.rejoined(enumerate(f"    f (/opt/lib/python3.10/site-packages/torch/{text}\n{text}".split("\n"), 1))),
    "tracebacks": lambda text: (tracebacks.read(text), tracebacks.numbered(text), tracebacks.error_of(text)),
    "classify": lambda text: (classify(text), cut_frame(text), cut_frame(f"    {text} (")),
    "boxes": lambda text: (Box().begins_inside(text), Box().begins_inside(f"│ /a/{text}.py:3 in {text}")),
}
PIECES = (
    'Thread 12 (idle): "MainThread"|Thread 0x7f12 (most recent call first):|Current thread 0x7f (most recent call first):|'
    'Process 77: x|Python v3.12.1|File "a.py", line 3, in f|File "a.py", line 3 in f|f (a.py:1)|a.py:1 in f|f @ a.py:2|'
    "#0 0x7f in poll () from libc.so.6|#1 f from a.py:3|Traceback (most recent call last):|"
    'Traceback for thread 7 (x) [Has the GIL]|(Python) File "a", line 1, in f|```|...|> |- |[rank3]: |'
    "(WorkerDict pid=7, ip=1.2.3.4) |worker-1  | |2026-01-02T03:04:05Z |[36m|\x1b[31m|  3%|3/9 [0:1<2]|Rank 3:|"
    "=== PID 12 ===|7 ranks identical|UNW_EBADREG|EPERM: Operation not permitted|os error 3|py-spy dump --pid 12|"
    "PID STAT WCHAN CMD|12 D nfs_wait x|[<0>] futex_wait+0x1/0x2|cat /proc/12/stack|(T) Task-1|└── |"
    "tid  task id  task name  coroutine|MainThread: |RuntimeError: x|KeyboardInterrupt| → | -> | ; |;|\\||5x 3s apart|"
    'Fatal Python error: Aborted|* 1 Thread 0x7f (LWP 5) "" f (a=1) at x.c:1|Stack dump for u 1 0.0 0.0 1 1 ? S 1:1 0:0 x|'
    "- 3 ranks are stuck in |`f_g` at `a.py:1`, |app{0,2..3}: #0 0x7f12ab34cd56 in f|"
    "rank 0: |all others in |main thread:\n|[pid=7 rank=1] f (a.py:1)|0-6号卡|卡在 | <- |a.out-    |step|all_reduce|62x a < b_c|0,1,3 all the same:|"
    "for p in 12 13; do py-spy|ps -eo pid,stat,args | grep x|\t|    |0x7f12ab34cd56|\n|\r|²|\ud800"
).split("|")
near = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=30).map("".join)
any_text = st.text(max_size=300) | near


@pytest.mark.parametrize("name", sorted(READERS))
@relaxed
@given(any_text)
@example("Thread ²")
@example("#" + "9" * 6000)
@example("f" * 20_000 + " (a.py:1)")
def test_each_reader_takes_any_line(name: str, text: str) -> None:
    """A line of a pasted text is anything, also half of what a tool writes.
    Each reader knows it or does not; no error."""
    for line in text.split("\n"):
        READERS[name](line)


@relaxed
@given(st.lists(near, max_size=25).map("\n".join))
def test_any_mixture_becomes_a_snapshot(text: str) -> None:
    """Pieces of all tools' texts come in any order.
    What is read can be kept and written; no error."""
    dumps = read(text)
    codec.encode(build([FileDumps(node="imported", stem="x", name="x.txt", time_s=1.0, dumps=dumps)] if dumps else []))


def read_afresh(text: str) -> None:
    """No line of it was read before: those that were cost no steps."""
    classified.cache_clear()
    lines.stripped.cache_clear()
    read(text)


def mixture(size: int) -> str:
    chosen = random.Random(7)
    return "\n".join("".join(chosen.choices(PIECES, k=3)) for _ in range(size))


@pytest.mark.parametrize(
    "text",
    [
        mixture,
        lambda size: "\n".join(f'Process {n}: x\nThread {n} (idle): "MainThread"\n    f (a.py:{n})' for n in range(size)),
        lambda size: 'Thread 1 (idle): "MainThread"\n' + "\n".join(f"    f{n} (a.py:1)" for n in range(size)),
        lambda size: "\n".join(f'[rank{n}]:   File "a.py", line 1, in f' for n in range(size)),
        lambda size: "\n".join(f"Thread {n} (idle)" for n in range(size)),
        lambda size: "\n".join(f"rank {n}: f (a.py:1) <- g_h <- main" for n in range(size)),
        lambda size: "\n".join(f"Rank {n} is in f (a.py:1), rank {n + 1} waits in g (b.py:2)." for n in range(0, size, 2)),
        lambda size: "rank 0:\n" + "\n".join(f"  step_{n}" for n in range(size)),
        lambda size: "| rank 0 | rank 1 |\n|---|---|\n" + "\n".join(f"| f (a.py:{n}) | g (b.py:{n}) |" for n in range(size)),
        lambda size: "\n".join(f"{'│   ' * (n % 40)}└── (T) Task-{n}" for n in range(size)),
        lambda size: "\n".join("same on rank 1-3, 7 ranks identical" for _ in range(size)),
        lambda size: "\n".join(f"f (a.py:1);g (b.py:{n}) 7" for n in range(size)),
        lambda size: "Rank 1:\n" + "\n\n".join("f (a.py:1)" for _ in range(size)),
        lambda size: "\n".join(f'{_HEAD}\n{_HEAD}\n  File "a.py", line {n}, in f\n    g()\n  File "a.py", line 2, in g' for n in range(size)),
    ],
)
def test_the_time_grows_as_the_text_does(text: Callable[[int], str]) -> None:
    """A text has twice, four times as many lines.
    It takes twice, four times as many steps: no line is looked at again for each other."""
    few, more, many = (steps(lambda n=n: read_afresh(text(n))) for n in (100, 200, 400))  # type: ignore[misc]
    assert more < 2.4 * few + 2000
    assert many < 2.4 * more + 2000


@pytest.mark.parametrize("piece", [p for p in PIECES if p.strip()])
def test_no_line_is_read_in_more_than_the_time_of_its_length(piece: str) -> None:
    """One line repeats a piece that a pattern looks for, thousands of times.
    It is done at once: a pattern that begins again at each letter takes seconds, one that tries all ways takes minutes."""
    began = time.process_time()
    for line in (piece * 4000, "a " * 4000 + piece, piece + " x" * 6000, piece + "(" * 6000, "(" * 6000 + piece, piece + " " * 9000 + "x"):
        read(line[:16_000])
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize("row", ["│ " + " " * 15_990 + "x", "│ " + "│ " * 7_990 + "x", "│ " + "a" * 15_990], ids=["blanks", "walls", "letters"])
def test_no_row_of_a_box_is_read_in_more_than_the_time_of_its_length(row: str) -> None:
    """A box of rich holds rows as long as a line may be.
    They are read at once: a pattern that tries where the row may end needs a second for each of them."""
    box = Box()
    box.plain("╭──── Traceback (most recent call last) ────╮")
    began = time.process_time()
    for _ in range(20):
        box.plain(row)
    assert time.process_time() - began < 2.0


LARGE = {
    "frames": lambda n: f"{n:x} f (a.py:{n})",
    "brackets": lambda n: "(" * 300 + f"{n:x}" + "(" * 300,
    "quotes": lambda n: "File '" * 60 + f"{n:x}",
    "sharps": lambda n: "# " * 100 + f"{n:x}" + " #1 from" * 60,
    "columns": lambda n: "PID " * 100 + f"{n:x}",
    "a stack in each hundredth line": lambda n: f"Thread {n} (idle)" if n % 100 == 0 else f"step {n:x}",
    "one long line": lambda n: "Thread 1 Process 2 (a.py:3) ",
}


@pytest.mark.parametrize("name", sorted(LARGE))
def test_the_search_for_stacks_takes_time_by_the_size_of_the_text(name: str) -> None:
    """A large text is full of what the search looks for, or of what only looks so; then it is four times as large.
    It takes at most about four times as long, and as many steps."""
    end = "" if name == "one long line" else "\n"

    def text(size: int) -> bytes:
        lines = []
        while size > 0:
            lines.append(LARGE[name](len(lines)) + end)
            size -= len(lines[-1])
        return "".join(lines).encode()

    spent, counted = [], []
    for size in (300_000, 1_200_000):
        data = text(size)
        started = time.process_time()
        lines = list(lines_of(data))
        spent.append(time.process_time() - started)
        counted.append(steps(lambda data=data: list(lines_of(data))))  # type: ignore[misc]
        numbers = [number for number, line in lines if line]
        assert numbers == sorted(set(numbers))
        whole = data.decode().split("\n")
        assert all(whole[number - 1] == line for number, line in lines if line)
    assert spent[1] < 4 * 2.5 * spent[0] + 0.5
    assert counted[1] < 4.8 * counted[0] + 4_000
