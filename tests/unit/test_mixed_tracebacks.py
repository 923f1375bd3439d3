"""Tracebacks that several processes wrote at once."""

from __future__ import annotations

import random
import time

import pytest

from ray_rl_debug.formats.pasted.mixed import MAX_LINES, apart
from ray_rl_debug.formats.pasted.read import read

HEAD = "Traceback (most recent call last):"
TRAINS = (
    ("train.py", 210, "<module>", "main()"),
    ("train.py", 188, "main", "trainer.fit(model, loader)"),
    ("job/trainer.py", 90, "fit", "self._step(batch)"),
    ("job/trainer.py", 120, "_step", "loss.backward()"),
    ("torch/_tensor.py", 522, "backward", "torch.autograd.backward("),
    ("torch/autograd/__init__.py", 266, "backward", "Variable._execution_engine.run_backward("),
)
LOADS = (
    ("train.py", 210, "<module>", "main()"),
    ("train.py", 191, "main", "validate(model, loader)"),
    ("job/val.py", 20, "validate", "for batch in tqdm(loader):"),
    ("tqdm/std.py", 1129, "__iter__", "for obj in iterable:"),
    ("torch/utils/data/dataloader.py", 345, "__next__", "data = self._next_data()"),
    ("torch/utils/data/dataloader.py", 830, "_next_data", "idx, data = self._get_data()"),
)
GETS = (
    ("/usr/lib/python3.6/multiprocessing/process.py", 258, "_bootstrap", "self.run()"),
    ("/usr/lib/python3.6/multiprocessing/process.py", 93, "run", "self._target(*self._args, **self._kwargs)"),
    ("/usr/lib/python3.6/multiprocessing/pool.py", 108, "worker", "task = get()"),
)
Stack = tuple[tuple[str, int, str, str], ...]


def traceback(stack: Stack, above: tuple[str, ...] = ()) -> list[list[str]]:
    """Its lines, those together that one call writes."""
    return [[*above, HEAD], *([f'  File "{file}", line {line}, in {name}', f"    {code}"] for file, line, name, code in stack), ["KeyboardInterrupt"]]


def lines_of(parts: list[list[str]]) -> list[str]:
    return [line for part in parts for line in part]


def mixed(*stacks: Stack, seed: int) -> list[str]:
    order, waiting, found = random.Random(seed), [traceback(one) for one in stacks], list[str]()
    while any(waiting):
        found += order.choice([one for one in waiting if one]).pop(0)
    return found


def told_apart(lines: list[str]) -> list[str]:
    return [raw for _, raw in apart(enumerate(lines, 1))]


def names(text: str) -> list[list[str]]:
    return sorted([name for t in d.threads for name, _, _ in t.frames] for d in read(text))


@pytest.mark.parametrize("seed", range(12))
def test_two_that_are_mixed_are_told_apart(seed: int) -> None:
    text = "\n".join(mixed(TRAINS, LOADS, seed=seed))
    assert names(text) == sorted([name for _, _, name, _ in reversed(one)] for one in (TRAINS, LOADS))


def test_lines_in_step_are_told_apart() -> None:
    a, b = lines_of(traceback(TRAINS)), lines_of(traceback(LOADS))
    text = "\n".join(line for pair in zip(a, b, strict=False) for line in pair)
    assert names(text) == sorted([name for _, _, name, _ in reversed(one)] for one in (TRAINS, LOADS))


def test_a_library_does_not_call_itself_by_the_name_of_its_module() -> None:
    c10d = "torch/distributed/distributed_c10d.py"
    stands = (*TRAINS[:1], ("train.py", 188, "main", "dist.barrier()"), (c10d, 3145, "barrier", "work.wait()"))
    sums = (*TRAINS[:1], ("train.py", 181, "main", "validate(model)"), ("train.py", 120, "validate", "dist.all_reduce(loss)"))
    text = f"""{HEAD}
{HEAD}
  File "train.py", line 210, in <module>
  File "train.py", line 210, in <module>
    main()
    main()
  File "train.py", line 188, in main
  File "train.py", line 181, in main
    validate(model)
    dist.barrier()
  File "train.py", line 120, in validate
  File "{c10d}", line 3145, in barrier
    work.wait()
    dist.all_reduce(loss)
  File "{c10d}", line 1700, in all_reduce
KeyboardInterrupt
    work.wait()
KeyboardInterrupt
"""
    assert names(text) == sorted([["all_reduce", *(n for _, _, n, _ in reversed(sums))], [n for _, _, n, _ in reversed(stands)]])


def test_children_keep_their_names() -> None:
    rows = [["Process ForkPoolWorker-23:", "Process ForkPoolWorker-25:", HEAD, HEAD]]
    rows += [[*frame, *frame] for frame in traceback(GETS)[1:]]
    found = read("\n".join(lines_of(rows)))
    assert [d.label for d in found] == ["ForkPoolWorker-23", "ForkPoolWorker-25"]
    assert [len(t.frames) for d in found for t in d.threads] == [3, 3]


@pytest.mark.parametrize(
    "lines",
    [
        lines_of(traceback(TRAINS)) + lines_of(traceback(LOADS)),
        lines_of(traceback(TRAINS)[:-1]) + lines_of(traceback(LOADS)),
        lines_of(traceback(GETS, ("Process ForkPoolWorker-1:",))) + lines_of(traceback(GETS, ("Process ForkPoolWorker-2:",))),
        ["Process ForkPoolWorker-1:", "INFO it has begun", *lines_of(traceback(GETS))],
        [HEAD, HEAD, '  File "a.py", line 1, in f', "", "and no more"],
    ],
    ids=["one after the other", "the first one was cut", "children one after the other", "a child that only began", "heads alone"],
)
def test_what_is_not_mixed_stays_as_it_is(lines: list[str]) -> None:
    assert told_apart(lines) == lines


def test_no_line_is_lost_but_marks_and_names_that_belong_to_nobody() -> None:
    lines = mixed(TRAINS, LOADS, GETS, seed=5)
    assert sorted(told_apart(lines)) == sorted(lines)


def test_more_lines_cost_their_share() -> None:
    def seconds(times: int) -> float:
        rows = [HEAD, HEAD, *['  File "a.py", line 1, in f'] * (MAX_LINES - 20)] * times
        start = time.process_time()
        told_apart(rows)
        return time.process_time() - start

    assert seconds(8) < 14 * seconds(1) + 0.3


def test_ranks_in_step_of_which_each_goes_on_alone():
    shared = [f'  File "/w/{f}.py", line {n}, in {g}' for f, n, g in (("run", 9, "<module>"), ("loop", 4, "train"))]
    rows = [HEAD, HEAD, *(row for frame in shared for row in (frame, frame, "    work(", "    work("))]
    rows += ['  File "/w/p2p.py", line 7, in send', "    wait(", '  File "/w/optim.py", line 8, in gather', "    group(", *["KeyboardInterrupt"] * 2]
    found = [[f[0] for f in d.threads[0].frames] for d in read("\n".join(rows) + "\n")]
    assert found == [["send", "train", "<module>"], ["gather", "train", "<module>"]]


def test_two_frames_of_one_rank_alone_cannot_be_told_apart_by_step():
    frame = '  File "/w/run.py", line 9, in <module>'
    own = [f'  File "/w/a{i}.py", line {i}, in f{i}' for i in range(3)]
    rows = [HEAD, HEAD, frame, frame, "    work(", "    work(", *own, "KeyboardInterrupt", "KeyboardInterrupt"]
    assert [row for _, row in apart(list(enumerate(rows)))] == rows
