"""Stacks written in every form, behind every prefix, come back as they were."""

from __future__ import annotations

import html
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ray_rl_debug.formats.pasted.read import read

Stack = list[tuple[str, str, int]]

functions = st.sampled_from(
    "all_reduce wait step _next_data forward __init__ <lambda> update_actor train_batch Worker.run compute_score run_scheduler_process f _x1".split()
)
files = st.sampled_from(
    "train.py /opt/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py verl/workers/actor/dp_actor.py a-b/c_d.py <string>".split()
)
frames = st.tuples(functions, files, st.integers(1, 99_999))
stacks = st.lists(st.lists(frames, min_size=1, max_size=6).map(lambda s: [*s, ("<module>", "main.py", 1)]), min_size=1, max_size=3)


def pyspy(pid: int, stack: Stack) -> str:
    return f'Process {pid}: python main.py\nPython v3.11.4 (/usr/bin/python3)\n\nThread {pid} (idle): "MainThread"\n' + "".join(
        f"    {function} ({file}:{line})\n" for function, file, line in stack
    )


def pyspy_without_names(pid: int, stack: Stack) -> str:
    return f"Thread {pid} (active)\n" + "".join(f"    {function} ({file}:{line})\n" for function, file, line in stack)


def faulthandler(pid: int, stack: Stack) -> str:
    return f"Current thread 0x00007f{pid:010x} (most recent call first):\n" + "".join(
        f'  File "{file}", line {line} in {f}\n' for f, file, line in stack
    )


def ctrl_c(pid: int, stack: Stack) -> str:
    lines = "".join(f'  File "{file}", line {line}, in {f}\n    some(code)\n' for f, file, line in reversed(stack))
    return f"Traceback (most recent call last):\n{lines}KeyboardInterrupt\n"


def pystack(pid: int, stack: Stack) -> str:
    lines = "".join(f'    (Python) File "{file}", line {line}, in {f}\n        some(code)\n' for f, file, line in reversed(stack))
    return f"Traceback for thread {pid} (python) [Has the GIL] (most recent call last):\n{lines}"


def failed_collective(pid: int, stack: Stack) -> str:
    return "".join(f"#{n} {f} from {file}:{line}\n" for n, (f, file, line) in enumerate(stack)) + "\n"


def place_first(pid: int, stack: Stack) -> str:
    return f"PID {pid}:\n" + "".join(f"    {file}:{line} in {f}\n" for f, file, line in stack) + "\n"


def on_one_line(pid: int, stack: Stack) -> str:
    return f"- pid {pid}: " + " → ".join(f"`{f} ({file}:{line})`" for f, file, line in reversed(stack)) + "\n"


def table_row(pid: int, stack: Stack) -> str:
    head = "" if pid > 4000 else "| pid | stack |\n|---|---|\n"
    return f"{head}| {pid} | " + "<br>".join(f"`{f} ({file}:{line})`" for f, file, line in stack) + " |\n"


def gdb(pid: int, stack: Stack) -> str:
    lines = "".join(f"#{n}  0x00007f4f5a2c1d2d in {f} (x=1) at {file}:{line}\n" for n, (f, file, line) in enumerate(stack))
    return f"Attaching to process {pid}\n\nThread 1 (Thread 0x7f00 (LWP {pid})):\n{lines}\n"


WHOLE_LINES = (on_one_line, table_row, gdb)
FORMS = (pyspy, pyspy_without_names, faulthandler, ctrl_c, pystack, failed_collective, place_first)
WRAPPERS = {
    "as it is": lambda text: text,
    "quoted": lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
    "Ray": lambda text: "".join(f"(WorkerDict pid=77, ip=10.0.0.3) {line}\n" for line in text.splitlines()),
    "Ray, coloured": lambda text: "".join(f"\x1b[36m(WorkerDict pid=77)\x1b[0m {line}\n" for line in text.splitlines()),
    "colours without ESC": lambda text: "".join(f"[36m(WorkerDict pid=77)[0m {line}\n" for line in text.splitlines()),
    "torchelastic": lambda text: "".join(f"[rank3]: {line}\n" for line in text.splitlines()),
    "local rank": lambda text: "".join(f"[default3]:{line}\n" for line in text.splitlines()),
    "Kubernetes": lambda text: "".join(f"2026-05-02T10:31:00.000000001Z stderr F {line}\n" for line in text.splitlines()),
    "compose": lambda text: "".join(f"trainer-1  | {line}\n" for line in text.splitlines()),
    "journald": lambda text: "".join(f"May  2 10:31:00 gpu07 python[77]: {line}\n" for line in text.splitlines()),
    "vLLM": lambda text: "".join(f"(EngineCore_DP0 pid=77) ERROR 05-22 14:41:15 [core.py:1102] {line}\n" for line in text.splitlines()),
    "fence": lambda text: f"It hangs here:\n```python\n{text}```\nAny idea?\n",
    "details": lambda text: f"<details><summary>stack</summary><pre>\n{html.escape(text)}</pre></details>\n",
    "Windows": lambda text: text.replace("\n", "\r\n"),
    "indented": lambda text: "".join(f"      {line}\n" for line in text.splitlines()),
    "padded": lambda text: "".join(f"{line:<200}\n" for line in text.splitlines()),
}


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(stacks, st.sampled_from(FORMS), st.sampled_from(sorted(WRAPPERS)))
def test_every_stack_comes_back(given_stacks: list[Stack], form: object, wrapper: str) -> None:
    text = "".join(form(4000 + n, stack) for n, stack in enumerate(given_stacks))  # type: ignore[operator]
    assert frames_in(WRAPPERS[wrapper](text)) == given_stacks


def frames_in(text: str) -> list[Stack]:
    return [list(t.frames) for d in read(text) for t in d.threads]


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(stacks, st.sampled_from(WHOLE_LINES), st.sampled_from(("as it is", "quoted", "fence", "Windows")))
def test_stacks_with_their_own_structure_come_back(given_stacks: list[Stack], form: object, wrapper: str) -> None:
    text = "".join(form(4000 + n, stack) for n, stack in enumerate(given_stacks))  # type: ignore[operator]
    assert frames_in(WRAPPERS[wrapper](text)) == given_stacks


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(stacks, st.lists(st.sampled_from((pyspy, faulthandler, pystack, place_first)), min_size=3, max_size=3))
def test_several_forms_in_one_text_with_words_between(given_stacks: list[Stack], forms: list[object]) -> None:
    text = "".join(
        f"\nThe {n}. one that hangs, on node{n}:\n\n```\n{form(4000 + n, stack)}```\n"  # type: ignore[operator]
        for n, (stack, form) in enumerate(zip(given_stacks, forms, strict=False))
    )
    assert frames_in(text) == given_stacks


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(stacks, st.sampled_from((pyspy, faulthandler, ctrl_c, pystack)), st.randoms(use_true_random=False))
def test_lines_of_several_ranks_that_are_mixed(given_stacks: list[Stack], form: object, chance: Any) -> None:
    waiting = [[f"[rank{n}]: {line}" for line in form(4000 + n, stack).splitlines()] for n, stack in enumerate(given_stacks)]  # type: ignore[operator]
    mixed = []
    while any(waiting):
        mixed.append(chance.choice([w for w in waiting if w]).pop(0))
    found = {d.rank: list(d.threads[0].frames) for d in read("\n".join(mixed))}
    assert found == dict(enumerate(given_stacks))
