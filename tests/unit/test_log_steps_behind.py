"""Work that is counted behind a failure: what it excuses, and what it does not."""

from __future__ import annotations

from pathlib import Path

from test_log_innocents import first

from ray_rl_debug.logs.steps import read_step

RAISED = 'Traceback (most recent call last):\n  File "/opt/job/train.py", line 3, in {}\n    print(a[9])\nIndexError: list index out of range\n'


def test_steps_that_a_thread_writes_behind_the_end_of_its_rank_excuse_nothing(tmp_path: Path) -> None:
    raised = RAISED.format("<module>")
    steps = [f"step {n} loss 0.5\n" for n in range(12, 16)]
    of_rank = "".join(f"[rank3] {line}" for line in (steps[0] + raised + steps[1] + steps[2] + steps[3]).splitlines(keepends=True))
    assert first(tmp_path, of_rank) == "IndexError: list index out of range"
    again = "".join(f"[rank3] {line}" for line in (steps[2] + raised + steps[1] + steps[2] + steps[3]).splitlines(keepends=True))
    assert first(tmp_path, again) is None  # started again, from an earlier step
    of_process = "".join(f"(Trainer pid=9) {line}" for line in (raised + steps[1] + steps[2]).splitlines(keepends=True))
    assert first(tmp_path, of_process) == "IndexError: list index out of range"


def test_one_step_does_not_excuse_what_ends_a_process(tmp_path: Path) -> None:
    dead = "[rank3] terminate called after throwing an instance of 'std::bad_alloc'\n"
    assert first(tmp_path, f"{dead}[rank3] step 12 loss 0.5\n") is not None
    assert first(tmp_path, f"{dead}[rank3] step 12 loss 0.5\n[rank3] step 13 loss 0.5\n") is None
    assert first(tmp_path, "[rank3] ValueError: no such row\n[rank3] step 12 loss 0.5\n") is None


def test_what_a_function_caught_and_wrote_down_is_excused_by_one_step(tmp_path: Path) -> None:
    record = "(Reward pid=6) ERROR:2026-03-02 10:00:01,100:comparison failed\n"
    caught, left = ("".join(f"(Reward pid=6) {line}" for line in RAISED.format(one).splitlines(keepends=True)) for one in ("compare", "<module>"))
    step = "(Boss pid=7) step: 4 - loss: 0.5\n"
    assert first(tmp_path, record + caught + step) is None
    assert first(tmp_path, record + caught) is not None
    assert first(tmp_path, left + step) is not None


def test_the_step_at_which_a_person_says_that_it_hangs_was_not_done() -> None:
    assert read_step("it hangs at step 143 after three hours") is None
    assert read_step("stuck in iteration 9") is None
    assert read_step("failed at step 12") == (12.0, "step")
    assert read_step("step 12: loss 0.5, rank 3 hung at step 13") == (12.0, "step")
