"""Frames, headings, marks and what parts the stacks are layers of their own: each way to write one goes with each way to write the others."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest

from ray_rl_debug.formats.pasted.read import read

Place = tuple[str, str, int]

STACKS: dict[int, Sequence[Place]] = {
    0: (("all_reduce", "torch/distributed/distributed_c10d.py", 2810), ("sync_grads", "trainer/optim.py", 120), ("main", "train.py", 12)),
    1: (("all_reduce", "torch/distributed/distributed_c10d.py", 2810), ("sync_grads", "trainer/optim.py", 120), ("main", "train.py", 12)),
    3: (("fetch_scores", "reward/remote.py", 44), ("compute_reward", "trainer/loop.py", 61), ("main", "train.py", 12)),
}
FRAMES: dict[str, Callable[[Place], str]] = {
    "py-spy": lambda f: f"{f[0]} ({f[1]}:{f[2]})",
    "faulthandler": lambda f: f'File "{f[1]}", line {f[2]} in {f[0]}',
    "traceback": lambda f: f'File "{f[1]}", line {f[2]}, in {f[0]}',
    "place in name": lambda f: f"{f[1]}:{f[2]} in {f[0]}",
    "place and call": lambda f: f"{f[1]}:{f[2]} {f[0]}()",
    "place (name)": lambda f: f"{f[1]}:{f[2]} ({f[0]})",
    "place - name": lambda f: f"{f[1]}:{f[2]} - {f[0]}",
    "name at place": lambda f: f"{f[0]} at {f[1]}:{f[2]}",
    "name @ place": lambda f: f"{f[0]} @ {f[1]}:{f[2]}",
    "name, file, line": lambda f: f"{f[0]}, {f[1]}, line {f[2]}",
    "quoted": lambda f: f"`{f[0]}` (`{f[1]}:{f[2]}`)",
    "fields": lambda f: f"file={f[1]} line={f[2]} func={f[0]}",
    "wide brackets": lambda f: f"{f[0]}（{f[1]}:{f[2]}）",
    "line in Chinese": lambda f: f"{f[1]} 第{f[2]}行 {f[0]}",
}
MARKS: dict[str, Callable[[int], str]] = {
    "blanks": lambda at: "    ",
    "nothing": lambda at: "",
    "numbers": lambda at: f"{at + 1}. ",
    "sharps": lambda at: f"#{at} ",
    "at": lambda at: "  at ",
    "bullets": lambda at: "  - ",
    "quotes": lambda at: "> ",
    "stairs": lambda at: "  " * (at + 1),
    "tree": lambda at: "  " * at + "└─ ",
}
HEADS: dict[str, Callable[[int], str]] = {
    "rank": lambda r: f"Rank {r}:",
    "rank alone": lambda r: f"rank {r}",
    "ruled": lambda r: f"=== rank {r} ===",
    "bold": lambda r: f"**rank {r}**",
    "title": lambda r: f"## Rank {r}",
    "with its process": lambda r: f"rank {r} (pid 410{r}):",
    "with its machine": lambda r: f"node{r // 2} rank {r}:",
    "in a sentence": lambda r: f"This is the stack of rank {r}:",
    "short": lambda r: f"r{r}:",
    "of a command": lambda r: f"$ py-spy dump --pid 410{r}  # rank {r}",
    "a card in Chinese": lambda r: f"第{r}张卡：",
    "a rank in Chinese": lambda r: f"rank {r} 的堆栈：",
}
PARTS: dict[str, Callable[[list[str], list[str]], str]] = {
    "blank lines": lambda heads, bodies: "\n\n".join(f"{h}\n{b}" for h, b in zip(heads, bodies, strict=True)),
    "nothing": lambda heads, bodies: "\n".join(f"{h}\n{b}" for h, b in zip(heads, bodies, strict=True)),
    "a block each": lambda heads, bodies: "\n\n".join(f"{h}\n```\n{b}\n```" for h, b in zip(heads, bodies, strict=True)),
    "one block": lambda heads, bodies: "```\n" + "\n\n".join(f"{h}\n{b}" for h, b in zip(heads, bodies, strict=True)) + "\n```",
}


def told(frame: str, mark: str, head: str, parts: str) -> list[tuple[int | None, list[Place]]]:
    bodies = ["\n".join(MARKS[mark](at) + FRAMES[frame](place) for at, place in enumerate(stack)) for stack in STACKS.values()]
    text = f"It hangs after some hours.\n\n{PARTS[parts]([HEADS[head](r) for r in STACKS], bodies)}\n\nAny idea?\n"
    return [(d.rank, sorted(d.threads[0].frames)) for d in read(text) if d.threads]


@pytest.mark.parametrize("frame", sorted(FRAMES))
@pytest.mark.parametrize("head", sorted(HEADS))
def test_each_way_to_write_a_frame_goes_with_each_heading(frame: str, head: str) -> None:
    expected = [(rank, sorted(stack)) for rank, stack in STACKS.items()]
    wrong = [(mark, parts) for mark, parts in zip(MARKS, itertools.cycle(PARTS), strict=False) if told(frame, mark, head, parts) != expected]
    assert wrong == []


@pytest.mark.parametrize("head", sorted(HEADS))
def test_names_alone_are_a_stack_below_a_heading(head: str) -> None:
    text = "\n\n".join(f"{HEADS[head](rank)}\n" + "\n".join(f"    {name}" for name, _, _ in stack) for rank, stack in STACKS.items())
    found = [(d.rank, [name for name, _, _ in d.threads[0].frames]) for d in read(text) if d.threads]
    assert found == [(rank, [name for name, _, _ in stack]) for rank, stack in STACKS.items()]


@pytest.mark.parametrize(
    "line",
    [
        "rank {0}: {1} <- {2} <- {3}",
        "[rank{0}] py-spy: MainThread: {1} <- {2} <- {3}",
        "- rank {0}: `{1}` ← `{2}` ← `{3}`",
        "| rank {0} | {1} ← {2} ← {3} |",
        "rank={0} stack={1} <- {2} <- {3}",
        "Rank {0} is stuck in {1}, called from {2}, called from {3}.",
        "{0}号卡卡在 {1} <- {2} <- {3}",
    ],
)
@pytest.mark.parametrize("frame", ["py-spy", "name @ place", "place in name"])
def test_a_stack_stands_behind_its_name(line: str, frame: str) -> None:
    text = "\n".join(line.format(rank, *map(FRAMES[frame], stack)) for rank, stack in STACKS.items())
    found = [(d.rank, list(d.threads[0].frames)) for d in read(text) if d.threads]
    assert found == [(rank, list(stack)) for rank, stack in STACKS.items()]


@pytest.mark.parametrize(
    "text",
    [
        "rank 0:\n  nothing\n  changed\n",
        "rank 0: loaded -> trained -> saved\n",
        "Rank 3 would wait in all_reduce -> wait -> poll if it came so far.\n",
        "Rank 0 should be in step (loop.py:9), rank 1 would be in read (data.py:3).\n",
        "Rank 2 is expected at barrier (ckpt.py:70), called from save (ckpt.py:66)\n",
        "rank 0:\n  KeyError\n  RuntimeError\n",
        "procs 4, gpus 8: see train.py\n",
        "[10:41] ana: it hangs in the second step\n",
        "| rank 0 | rank 1 |\n|---|---|\n| ok | ok |\n",
    ],
)
def test_what_is_no_stack_is_none(text: str) -> None:
    assert [d for d in read(text) if d.threads] == []


def test_a_machine_alone_names_what_stands_below_it() -> None:
    text = "gpu-a7:\n   f (a.py:1)\n   g (a.py:2)\ngpu-b2:\n   h (a.py:3)\n   g (a.py:4)\n\nstep-3:\n   k (a.py:5)\n   g (a.py:6)\n"
    assert [d.node for d in read(text)][:2] == ["gpu-a7", "gpu-b2"]
    assert "step-3" not in [d.node for d in read(text)]


def test_what_a_function_does_is_no_file_of_it() -> None:
    (one,) = read("rank 3 -> update_policy -> backward -> all_reduce (waits)\n")
    assert (one.rank, one.threads[0].frames) == (3, [("all_reduce", "", 0), ("backward", "", 0), ("update_policy", "", 0)])
