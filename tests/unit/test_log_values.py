"""Lines that print a value, and what one line says of a complaint or of an end."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_log_innocents import first, story


@pytest.mark.parametrize(
    "line",
    [
        "fatal_patterns: [\"CUDA error\", 'Segmentation fault (core dumped)']",
        "Generated: 'Aborted (core dumped)'",
        'Generated[3]: "it says \\"NCCL WARN\\", then RuntimeError: CUDA error"',
        "{'run_result': {'return_code': 1, 'stderr': 'Traceback (most recent call last):\\n  ModuleNotFoundError: No module named x'}}",
        "{'stdout': '', 'stderr': 'Segmentation fault (core dumped)'}",
        'verl/a.py:88:        raise RuntimeError("CUDA error: device-side assert triggered")',
    ],
)
def test_a_printed_value_is_no_failure(tmp_path: Path, line: str) -> None:
    assert first(tmp_path, f"{line}\n") is None


@pytest.mark.parametrize(
    "line",
    [
        "reason: 'Segmentation fault (core dumped)'",
        "KeyError: 'prompt'",
        "Generated: 'x' Aborted (core dumped)",
        "{'error': 'RuntimeError: CUDA error: an illegal memory access was encountered'}",
    ],
)
def test_a_value_that_says_what_went_wrong(tmp_path: Path, line: str) -> None:
    assert first(tmp_path, f"{line}\n") is not None


def test_one_step_excuses_a_record_that_gives_nothing_up(tmp_path: Path) -> None:
    said = "[Error] [omni.plugin] the pool of contacts is too small{}\n[Error] [rtx.plugin] the picture is too small\n"
    assert first(tmp_path, said.format("") + "iteration 12/1500 reward 3.1\n") is None
    assert first(tmp_path, said.format("") + "another line\n") is not None
    assert first(tmp_path, said.format(", giving up") + "iteration 12/1500 reward 3.1\n") is not None


def test_an_error_code_tells_that_a_process_ended_not_why(tmp_path: Path) -> None:
    told = story(tmp_path, "slurmstepd: error: pyxis: child 7 failed with error code: 1\nslurmstepd: error: pyxis: failed to import docker image\n")
    assert told is not None and told.first is not None and told.first.text == "pyxis: failed to import docker image"


def test_what_a_thrown_object_says_is_shown_with_it(tmp_path: Path) -> None:
    said = (
        "[2026-03-02 10:00:01 TP1] terminate called after throwing an instance of 'c10::Error'\n[2026-03-02 10:00:01 TP1]   what():  no such card\n"
    )
    told = story(tmp_path, said)
    assert told is not None and told.first is not None and told.first.lines == ("what():  no such card",)


@pytest.mark.parametrize("mark", ["", "(Boss pid=7) "])
def test_a_diff_and_code_say_nothing(tmp_path: Path, mark: str) -> None:
    diff = '--- a/run.py\n+++ b/run.py\n@@ -1,2 +1,2 @@\n-    raise RuntimeError("CUDA error")\n+    note("Fatal Python error: Aborted")\n'
    assert first(tmp_path, "".join(mark + line for line in diff.splitlines(keepends=True))) is None
    assert first(tmp_path, 'print("Segmentation fault (core dumped)")\n') is None
    assert first(tmp_path, "RuntimeError('CUDA error: an illegal memory access was encountered')\n") is not None
    assert first(tmp_path, "@@ -1,2 +1,2 @@\n context\nSegmentation fault (core dumped)\n") is not None


def test_a_known_error_in_a_note_or_in_words_of_its_own_is_excused_by_what_follows(tmp_path: Path) -> None:
    note = "2026-03-02 10:00:01 INFO verifies task 9: RuntimeError: CUDA out of memory\n"
    assert first(tmp_path, note + "2026-03-02 10:00:02 INFO verifies task 10\n") is None
    assert first(tmp_path, note + "2026-03-02 10:00:02 INFO exiting\n") is not None
    said = "could not read /c/x.lock: [Errno 116] Stale file handle\n"
    assert first(tmp_path, f"{said}Map: 100%|####| 7473/7473 [00:02<00:00, 3100 examples/s]\n") is None
    assert first(tmp_path, f"{said}the map is next\n") is not None
    assert first(tmp_path, "OSError: [Errno 116] Stale file handle\n[rank1] step 4 loss 0.2\n") is not None


def test_the_end_of_the_work_may_be_told_behind_what_it_brings_about(tmp_path: Path) -> None:
    raised = 'Process Fork-3:\nTraceback (most recent call last):\n  File "/opt/env.py", line 9, in reads\n    read(fd)\nKeyboardInterrupt\n'
    assert first(tmp_path, f"{raised}Final model saved to /out/m.zip\n") is None
    assert first(tmp_path, f"{raised}no model\n") is not None


def test_a_tracker_that_caught_its_own_error(tmp_path: Path) -> None:
    raised = 'Traceback (most recent call last):\n  File "/opt/site-packages/{}/send.py", line 9, in send\n    post()\nOSError: x\n'
    assert first(tmp_path, raised.format("langfuse")) is None
    assert first(tmp_path, raised.format("vllm")) is not None


def test_the_rank_of_an_adapter_is_no_process(tmp_path: Path) -> None:
    told = story(tmp_path, "(Engine pid=8) ValueError: LoRA rank 64 is greater than max_lora_rank 16.\n")
    assert told is not None and told.first is not None and told.first.who[0].pid == 8


def test_who_starts_it_again_goes_on(tmp_path: Path) -> None:
    said = "[boss] env 12 (pid 44) exited with code -11, {}\n"
    assert first(tmp_path, said.format("starting it again")) is None
    assert first(tmp_path, said.format("starting the end")) is not None


def test_code_that_was_tried_and_scored(tmp_path: Path) -> None:
    for said in ("prog: Segmentation fault (core dumped)", "error: aborting due to 1 previous error", "Fatal error: exception Stack_overflow"):
        assert first(tmp_path, f"{said}\n[grader] candidate 7 has reward 0\n") is None
        assert first(tmp_path, f"{said}\n[grader] candidate 7 is next\n") is not None
        assert first(tmp_path, f"(Actor pid=6) ready\n(Trainer pid=7) {said}\n(Trainer pid=7) candidate 7 has reward 0\n") is not None


def test_a_step_that_is_run_again(tmp_path: Path) -> None:
    said = "ERROR:state:found NaN on rank 3. A passing error is suspected, rerunning\n"
    assert first(tmp_path, said) is None
    assert first(tmp_path, said.replace("rerunning", "rerun with more memory")) is not None


CAUGHT = "Traceback (most recent call last):\n  File \"/srv/envs/shop.py\", line 71, in {}\n    item = self.items[idx]\nKeyError: 'B07X'\n"


def test_a_traceback_that_a_function_caught_and_printed(tmp_path: Path) -> None:
    caught, left = CAUGHT.format("step"), CAUGHT.format("<module>")
    assert first(tmp_path, f"{caught}env 3: invalid action, reward -0.1\n") is None
    assert first(tmp_path, f"{left}env 3: invalid action, reward -0.1\n") is not None
    records = "".join(f"[2026-03-02 10:00:0{n}] env {n} looks at its page\n" for n in range(3))
    assert first(tmp_path, caught + records) is None
    assert first(tmp_path, left + records) is not None
    assert first(tmp_path, f"{caught}[2026-03-02 10:00:01] exiting\n{records}") is not None
    assert first(tmp_path, f"Error executing job with overrides: []\n{caught}{records}") is not None
    assert first(tmp_path, f"{caught}one\ntwo\nthree\nfour\n") is not None  # these may belong to the message


def test_a_record_with_a_traceback_and_the_next_of_its_writer(tmp_path: Path) -> None:
    record = "2026-04-01 10:00:00,100 [worker-3] ERROR failed to score item 7\n" + CAUGHT.format("loop")
    assert first(tmp_path, f"{record}2026-04-01 10:00:01,100 [worker-3] DEBUG item 8 has 0.5\n") is None
    assert first(tmp_path, f"{record}2026-04-01 10:00:01,100 [worker-4] DEBUG item 8 has 0.5\n") is not None


def test_words_of_what_goes_on(tmp_path: Path) -> None:
    assert first(tmp_path, "ERROR: all rewards of 12 groups are equal, they are filtered\n") is None
    assert first(tmp_path, "ImportError: libcudart.so.11.0: cannot open shared object file\nno flash-attn, sdpa is used\n") is None
    assert first(tmp_path, "ImportError: libcudart.so.11.0: cannot open shared object file\nthe card is used by another one\n") is not None
    assert first(tmp_path, "core dumps are off: a Segmentation fault leaves none\n") is None
    retried = "(fetch pid=7) Task fetch failed with retryable exception: TaskID(77).\n"
    raised = "".join(f"(fetch pid=7) {line}" for line in CAUGHT.format("fetch").splitlines(keepends=True))
    assert first(tmp_path, retried + raised) is None


def test_what_is_said_of_one_sample_or_of_an_agents_command(tmp_path: Path) -> None:
    assert first(tmp_path, "[bench] sample 3: compilation failed: nvcc fatal   : Unsupported gpu architecture 'compute_35'\n") is None
    assert first(tmp_path, "candidate 9: RuntimeError: CUDA error: an illegal memory access was encountered\n") is None
    assert first(tmp_path, "nvcc fatal   : Unsupported gpu architecture 'compute_35'\n") is not None
    assert first(tmp_path, "[env] command ended with exit code 1 in 2.1 s\n") is None
    assert first(tmp_path, "[env] process ended with exit code 1 in 2.1 s\n") is not None


def test_tests_of_java(tmp_path: Path) -> None:
    failed = "[ERROR] lab.PoolTest.leases -- Time elapsed: 0.02 s <<< FAILURE!\norg.opentest4j.AssertionFailedError: expected: <3> but was: <2>\n"
    assert first(tmp_path, failed) is None
    assert first(tmp_path, failed.replace("<<<", "").replace("org.opentest4j", "lab")) is not None


def test_a_line_that_begins_with_the_words_of_another(tmp_path: Path) -> None:
    assert first(tmp_path, '[page 3 of 10] "Why do I get Segmentation fault (core dumped)?" - 31 votes\n') is None
    assert first(tmp_path, '[page 3 of 10] "Why?" Segmentation fault (core dumped)\n') is not None
