"""One stack in every notation and layout that people use: it is read whole, innermost first, as the rank's above it."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from ray_rl_debug.formats.pasted import loose
from ray_rl_debug.formats.pasted.read import read

STACK = (
    ("wait", "torch/distributed/distributed_c10d.py", 612),
    ("all_reduce", "torch/distributed/distributed_c10d.py", 2810),
    ("reduce_grads", "my/optim.py", 91),
    ("train_step", "my/loop.py", 233),
    ("main", "train.py", 40),
)
NOTATIONS = (
    "{f} ({p}:{n})",
    "{f}({p}:{n})",
    "at {f} ({p}:{n}:5)",
    "{p}:{n} in {f}",
    "{p}:{n}:{f}",
    "{p}:{f}:{n}",
    "{p}::{f}:{n}",
    "{p}#L{n} {f}",
    "{p} L{n} {f}",
    "{p} line {n} in {f}",
    "{f}() at {p}:{n}",
    "{f}(self, x=1) {p}:{n}",
    "{f} (line {n} of {p})",
    'File "{p}", line {n}, in {f}',
    "File {p}, line {n}, in {f}",
    "{f} — {p}:{n}",
    "{f} [{p}:{n}]",
    "{p}({n}): {f}",
    "{f}        {p}    {n}",
    "{f},{p},{n}",
    "`{f}` (`{p}:{n}`)",
    "`{f}()` at `{p}` line {n}",
    "**{f}** — `{p}:{n}`",
    "[`{f}`](https://git.example/o/r/blob/abc/{p}#L{n})",
    '{{"name": "{f}", "filename": "{p}", "line": {n}}}',
    "<FrameSummary file {p}, line {n} in {f}>",
    "func={f} file={p} line={n}",
    "12.5% {f} ({p}:{n})",
    "{p} in {f}",
)
LAYOUTS: dict[str, Callable[[list[str]], str]] = {
    "lines": "\n".join,
    "fence": lambda frames: "```\n" + "\n".join(frames) + "\n```",
    "bullets": lambda frames: "\n".join(f"- {f}" for f in frames),
    "numbers": lambda frames: "\n".join(f"{i}. {f}" for i, f in enumerate(frames, 1)),
    "gdb's numbers": lambda frames: "\n".join(f"#{i}  {f}" for i, f in enumerate(frames)),
    "stairs": lambda frames: "\n".join(f"{'  ' * i}└─ {f}" for i, f in enumerate(frames)),
    "quote": lambda frames: "\n".join(f"> {f}" for f in frames),
    "arrows": " → ".join,
    "arrows over lines": lambda frames: " → ".join(frames[:2]) + "\n  → " + " → ".join(frames[2:]),
    "called from": ", called from ".join,
}


@pytest.mark.parametrize("notation", NOTATIONS)
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_a_stack_is_read_in_every_notation(notation: str, layout: str) -> None:
    if layout == "called from" and notation.startswith("File "):
        return  # a traceback's own line, whose order is known
    for turned in (False, True) if layout != "called from" else (False,):
        written = [notation.format(f=f, p=p, n=n) for f, p, n in STACK]
        found = read("Rank 3:\n" + LAYOUTS[layout](written[::-1] if turned else written) + "\n")
        assert [(d.rank, [[f[0] for f in t.frames] for t in d.threads]) for d in found] == [(3, [[f for f, _, _ in STACK]])]
        files = [f[1] for f in found[0].threads[0].frames]
        assert all(whole.endswith(name) for name, (_, whole, _) in zip(files, STACK, strict=True))


def test_a_stack_of_names_with_dots_below_a_rank() -> None:
    found = read("Rank 3:\n- torch.distributed.all_reduce\n- my.optim.reduce_grads\n- my.loop.Trainer.train_step()\n")
    assert [t.frames for d in found for t in d.threads] == [
        [("all_reduce", "torch/distributed.py", 0), ("reduce_grads", "my/optim.py", 0), ("train_step", "my/loop.py", 0)]
    ]


@pytest.mark.parametrize(
    "text",
    [
        "see train.py",
        "a.py:12: UserWarning: something",
        "fixed in train.py:12",
        "tests/test_a.py PASSED",
        "my/a.py    120    30    75%",
        "   12    0.001    0.000    0.3    0.4 a.py:33(f)",
        "node1.cluster:29500",
        "INFO train.py:12 - the step took 3 s",
        "https://host.example/a.py:12 f",
        "a.py and b.py:3 f",
        "please edit the file a.py line 30",
        "",
    ],
)
def test_what_says_more_is_no_frame(text: str) -> None:
    assert loose.place(text) is None


def test_words_before_each_frame_are_a_prefix() -> None:
    """A logger writes a stack line by line, with its own columns before each."""
    lines = [f"2026-11-02 10:00:0{i},123 INFO dumper: {f} ({p}:{n})" for i, (f, p, n) in enumerate(STACK)]
    assert [[f[0] for f in t.frames] for d in read("\n".join(lines)) for t in d.threads] == [[f for f, _, _ in STACK]]


def test_gdb_shows_one_thread_and_then_another() -> None:
    """The frame that gdb shows of the thread to which somebody switches is the first of its stack, not another process."""
    first = "(gdb) bt\n#0  0x7f10 in poll () from /lib/libc.so.6\n#1  0x7f11 in main () at a.c:3\n"
    frame = "#0  0x7f12 in read () from /lib/libc.so.6\n"
    second = f"[Switching to thread 2 (Thread 0x7f10ab12 (LWP 51477))]\n{frame}(gdb) bt\n{frame}#1  0x7f13 in get () at b.c:3\n"
    found = read(f"{first}\nand this one is frozen:\n\n{second}")
    assert [[(t.tid, [f[0] for f in t.frames]) for t in d.threads] for d in found] == [[(None, ["poll", "main"]), (51477, ["read", "get"])]]


def test_threads_below_the_rest_of_a_stack_are_of_the_same_process() -> None:
    cut = '```\n    self.run()\n  File "/v/a.py", line 9, in run\n    go()\n  File "/v/a.py", line 7, in go\n    waiter.acquire()\n'
    named = "".join(
        f'~~~~~ Stack of {name} (1399243973566{n}) ~~~~~\n  File "/v/b.py", line {n}, in main\n    poll()\n'
        for n, name in enumerate(("Thread-4", "MainThread"), 1)
    )
    assert [len(d.threads) for d in read(f"{cut}{named}```\n")] == [3]


def test_every_pair_of_notations_makes_one_stack() -> None:
    """Somebody copies some frames from here and some from there."""
    for one, other in itertools.pairwise(n for n in NOTATIONS if not n.startswith(("{{", "File "))):
        frames = [(one if i % 2 else other).format(f=f, p=p, n=n) for i, (f, p, n) in enumerate(STACK)]
        assert [len(t.frames) for d in read("Rank 3:\n" + "\n".join(frames)) for t in d.threads] == [len(STACK)]


@pytest.mark.parametrize(
    "head",
    [
        "rank_{}.txt",
        "stacks/rank{}.log:",
        "$ cat rank{}.txt",
        "This is the dump from rank {}.",
        "$ py-spy dump -p 88  (rank {})",
        "第 {} 卡:",
        "🔴 Rank {}",
        "| rank {} |",
    ],
)
def test_ranks_are_named_in_many_words(head: str) -> None:
    stack = "```\n" + "\n".join(f"    {f} ({p}:{n})" for f, p, n in STACK) + "\n```\n"
    assert [d.rank for d in read("\n".join(f"{head.format(r)}\n{stack}" for r in (3, 5)))] == [3, 5]


@pytest.mark.parametrize("head", ["GPU {}:", "cuda:{}", "Actor {}:", "actor/{}:", "MegatronWorker[{}]:"])
def test_parts_of_a_program_are_named_by_their_headings(head: str) -> None:
    """Two headings differ in their number alone."""
    stack = "    f (my/a.py:1)\n    g (my/a.py:2)\n"
    assert [d.label for d in read("\n".join(f"{head.format(r)}\n{stack}" for r in (3, 5)))] == [head.format(r).strip("[]:") for r in (3, 5)]


def test_the_pod_in_which_a_command_runs_is_the_machine() -> None:
    stack = "    f (my/a.py:1)\n    g (my/a.py:2)\n"
    told = "".join(f"$ kubectl -n rl exec -it trainer-{r} -- py-spy dump --pid 1\n{stack}\n" for r in (3, 5))
    assert [(d.node, d.pid) for d in read(told)] == [("trainer-3", 1), ("trainer-5", 1)]


def test_gdb_breaks_a_frame_behind_its_bracket() -> None:
    broken = "#1  0x7f11 in hv::(anonymous namespace)::RunOnce (\n    state=...)\n    at hv/ops.cc:17\n"
    text = f"#0  0x7f10 in poll () from /lib/libc.so.6\n{broken}#2  0x7f12 in main () at a.c:3\n"
    assert [len(t.frames) for d in read(text) for t in d.threads] == [3]


def drawn(text: str) -> list[tuple[object, list[str]]]:
    return [(d.rank if d.rank is not None else d.label, [f[0] for f in d.threads[0].frames]) for d in read(text)]


def test_a_tree_of_names_is_one_stack() -> None:
    text = (
        "rank 0-1\n └─ train_step\n     └─ backward\n         └─ all_reduce   <-- all of them here\nrank 2\n `-- train_step\n      `-- read_shard\n"
    )
    reduce = ["all_reduce", "backward", "train_step"]
    assert drawn(text) == [(0, reduce), (1, reduce), (2, ["read_shard", "train_step"])]


@pytest.mark.parametrize(
    ("line", "who", "names"),
    [
        ("Rank 1 ──> train_step ──> all_reduce", 1, ["all_reduce", "train_step"]),
        ("rank 0: train_step -> backward -> all_reduce   <-- here", 0, ["all_reduce", "backward", "train_step"]),
        ("main thread -> fit() -> _validate() -> ray.get(refs)   <- never returns", "main thread", ["ray.get", "_validate", "fit"]),
        ("TaskRunner -> generate_sequences -> asyncio.gather", "TaskRunner", ["asyncio.gather", "generate_sequences"]),
    ],
)
def test_chains_that_are_drawn_with_arrows(line: str, who: object, names: list[str]) -> None:
    assert drawn(f"{line}\n") == [(who, names)]
