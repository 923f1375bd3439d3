"""What a line that tells of an end leaves open: whether its container was started again, whether others saw no more than that it is gone."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_log_blocks_alone import role
from test_log_innocents import story

GONE = "(APIServer pid=7) ERROR 01-07 20:00:59 [core_client.py:564] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.\n"
RAISED = "(APIServer pid=7) vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.\n"
LAST = "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n"


def test_one_part_that_sees_another_gone_says_not_that_the_run_failed(tmp_path: Path) -> None:
    """vLLM's monitor of its engine writes it also behind the results of a script that ends."""
    assert role(tmp_path, GONE) == "noted"
    assert role(tmp_path, GONE.replace("unexpectedly,", "unexpectedly with exit code -9,")) == "first"
    assert role(tmp_path, GONE + RAISED) == "first"


def test_an_end_with_a_restart_in_brackets_is_noted_and_with_what_came_then_survived(tmp_path: Path) -> None:
    ended = "reward-1 exited with code 137 (restarting)\n"
    up = "reward-1  | INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)\n"
    assert role(tmp_path, ended.replace(" (restarting)", "")) == "first"
    assert role(tmp_path, ended) == "noted"
    assert role(tmp_path, f"reward-1  | Killed\n{ended}{up}") is None
    assert role(tmp_path, f"judge-1  | Killed\n{ended}{up}") == "first"


def test_how_a_container_ended_before_it_was_ready_again_is_no_failure_of_today(tmp_path: Path) -> None:
    ready = "      Finished:     Fri, 14 Nov 2025 04:10:58 +0000\n    Ready:          True\n"
    running = "    State:          Running\n"
    assert role(tmp_path, running + LAST + ready) is None
    assert role(tmp_path, running + LAST + ready.replace("True", "False")) == "first"
    assert role(tmp_path, running + LAST + "  sidecar:\n" + ready) == "first"
    assert role(tmp_path, LAST.replace("Last State", "State") + ready) == "first"


def test_the_reason_why_an_actor_died_is_told_of_that_actor(tmp_path: Path) -> None:
    told = story(
        tmp_path,
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n\tclass_name: WorkerDict\n\tactor_id: 8f1a\n"
        "\tpid: 4411\n\tnamespace: 77\n\tip: 10.0.0.7\nThe actor died because its node has died. Node Id: 8f1b\n"
        "\tthe actor's node was terminated unexpectedly: health check failed due to missing too many heartbeats\n",
    )
    assert told is not None and told.first is not None and told.first.who[0].pid == 4411


@pytest.mark.parametrize(
    ("tried", "over"),
    [
        (
            "slurmd: error: slurm_receive_msg_and_forward: [[gpu-1]:4121] failed: Zero Bytes were transmitted or received",
            "srun: error: Task launch for StepId=29.3 failed on node n2: Zero Bytes were transmitted or received",
        ),
        (
            "gpu-3:881:1042 [0] nccl_net_ofi_init:1212 NCCL WARN NET/OFI Failed to initialize sendrecv protocol",
            "gpu-3:881:1042 [0] ofi_process_cq:1033 NCCL WARN NET/OFI Request 0xf4 completed with error. RC: 21. Error: unknown",
        ),
        (
            "gpu-3:881:1042 [0] transport/p2p.cc:275 NCCL WARN P2P mapping failed for peer 3",
            "gpu-3:881:1042 [0] transport/p2p.cc:275 NCCL WARN Cuda failure 'peer access is not supported between these two devices'",
        ),
        (
            "raylet[99]: 2026-11-03 08:00:01 ERROR io_service_pool: Too many open files: accept: errno 24",
            "OSError: [Errno 24] Too many open files: '/job/a.pt'",
        ),
    ],
)
def test_what_is_tried_again_or_has_a_substitute_ends_nothing_alone(tmp_path: Path, tried: str, over: str) -> None:
    assert role(tmp_path, f"{tried}\n") in (None, "noted")
    assert role(tmp_path, f"{over}\n") == "first"


def test_a_stamp_without_a_year_is_no_part_of_the_sentence_around_a_known_error(tmp_path: Path) -> None:
    assert role(tmp_path, "Nov 21 03:04:05 gpu12 raylet[88]: socket: Too many open files\n") == "first"
    assert role(tmp_path, "2026-11-21 03:04:05 gpu12 raylet[88]: socket: Too many open files\n") == "first"


def test_a_node_that_somebody_took_out_of_service_is_noted(tmp_path: Path) -> None:
    nodes = "NAME     STATUS     ROLES    AGE   VERSION\ngpu-1    Ready      <none>   91d   v1.33.1\ngpu-9    {}   <none>   91d   v1.33.1\n"
    assert role(tmp_path, nodes.format("NotReady")) == "first"
    assert role(tmp_path, nodes.format("NotReady,SchedulingDisabled")) == "noted"


def test_an_actor_that_its_program_ended_by_a_call_was_told_to_end(tmp_path: Path) -> None:
    died = "ray.exceptions.RayActorError: The actor 8f1a died because it was killed by `ray.kill`.\n"
    assert role(tmp_path, died) == "told"
    assert role(tmp_path, died.replace("it was killed by `ray.kill`", "its worker process was killed")) == "first"


def test_a_fault_on_a_card_is_that_of_the_program_which_the_driver_names(tmp_path: Path) -> None:
    fault = "[88121.1] NVRM: Xid (PCI:0000:9b:00): {}, pid=2211, name={}, Ch 00000010\n"
    assert role(tmp_path, fault.format(43, "jupyter-lab")) == "noted"
    assert role(tmp_path, fault.format(43, "python3")) == "first"
    assert role(tmp_path, fault.format(94, "jupyter-lab")) == "first"  # the card is sick, whoever uses it


def test_what_is_taken_instead_at_the_end_of_an_exception_is_a_doubt(tmp_path: Path) -> None:
    missed = "OSError: We couldn't connect to 'https://huggingface.co' to load the files"
    assert role(tmp_path, f"{missed}, and couldn't find them in the cached files.\n") == "first"
    assert role(tmp_path, f"{missed}, the copy in the cache is used\n") == "noted"
    lacks = "ModuleNotFoundError: No module named 'apex'"
    assert role(tmp_path, f"{lacks}\n") == "first"
    assert role(tmp_path, f"{lacks}. torch.nn.LayerNorm will be used.\n") == "noted"


@pytest.mark.parametrize("python", ["python: ", "/usr/bin/python3: ", "/opt/venv/bin/python3.11: "])
@pytest.mark.parametrize(
    "says",
    [
        "can't open file '/job/trian.py': [Errno 2] No such file or directory",
        "can't find '__main__' module in '/job'",
        "No module named verl.trainer.main_ppo",
        "Error while finding module specification for 'verl.main_ppo' (ModuleNotFoundError: No module named 'verl')",
    ],
)
def test_a_python_that_does_not_start_its_program_says_so_behind_its_own_path(tmp_path: Path, python: str, says: str) -> None:
    assert role(tmp_path, f"{python}{says}\n") == "first"


def test_the_end_of_a_queue_is_nobodys_end(tmp_path: Path) -> None:
    slow = "botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the PutObject operation\n"
    assert role(tmp_path, slow) == "first"
    assert role(tmp_path, f"{slow}shard 41 waits at the end of the queue\n64 of 64 shards are there\n") in (None, "noted")
