"""Heads of notebooks and services, what a machine's own services complain of, and codes that are no exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_log_innocents import RAISED, first, story


def test_a_letter_in_front_of_the_time_is_the_level(tmp_path: Path) -> None:
    record = "[E 2026-11-23 08:05:01.100 ServerApp] the socket of a kernel failed\n"
    raised = "".join(f"    {line}\n" for line in f"{RAISED}StreamClosedError: closed".splitlines())
    note = "[I 2026-11-23 08:05:03.210 ServerApp] {}\n"
    assert first(tmp_path, record + raised + note.format("Connecting to kernel 8a1b.")) is None
    assert first(tmp_path, record + raised + note.format("Shutting down")) is not None
    assert first(tmp_path, record + raised) is not None


def test_records_of_rays_own_source_are_one_complaint(tmp_path: Path) -> None:
    said = "2026-11-23 08:00:21,100 ERROR services.py:{} -- {}\n"
    both = said.format(1362, "Failed to start the page , return code -11") + said.format(1363, "Error lines are in page.log.")
    assert first(tmp_path, f"{both}2026-11-23 08:00:22,812 INFO worker.py:1888 -- Connected\n") is None
    assert first(tmp_path, both) is not None


def test_what_is_taken_instead_is_said_in_the_same_line(tmp_path: Path) -> None:
    lacks = "WARNING 11-23 08:01:33 [tokenizer.py:281] No tokenizer found in /a, {}. (Exception: Can't load tokenizer for '/a'. If you tried it)\n"
    assert first(tmp_path, lacks.format("using base model tokenizer instead")) is None


@pytest.mark.parametrize("program", ["google_guest_agent", "amazon-ssm-agent", "node_exporter", "systemd-resolved", "fwupdmgr"])
def test_services_of_the_machine_are_none_of_the_job(tmp_path: Path, program: str) -> None:
    said = "Nov 23 08:00:00 gpu-3 {}[812]: ERROR main.go:231 the watch of a page failed\n"
    assert first(tmp_path, said.format(program)) is None
    assert first(tmp_path, said.format("slurmd")) is not None


def test_the_code_of_a_protocol_is_no_exit_code(tmp_path: Path) -> None:
    assert first(tmp_path, "browser [err] handshake failed; returned -1, SSL error code 1, net_error -100\n") is None
    assert first(tmp_path, "worker exited with code 1\n") is not None


def test_a_rendezvous_that_cannot_be_closed_when_all_is_done(tmp_path: Path) -> None:
    done = "[2026-11-23 08:55:01,120] torch.distributed.elastic.agent.server.api: [INFO] [default] worker group {} finished.\n"
    left = "[2026-11-23 08:55:04,310] torch.rdzv: [WARNING] The node 'n1' has failed to shutdown the rendezvous due to RendezvousConnectionError.\n"
    assert first(tmp_path, done.format("successfully") + left) is None
    assert first(tmp_path, done.format("not") + left) is not None


@pytest.mark.parametrize(
    ("line", "who"),
    [
        ("Abort(1091087) on node 3 (rank 3 in comm 0): Fatal error in PMPI_Init: Other MPI error, error stack:", 3),
        ("MPICH ERROR [Rank 12] [job id 812.0] [nid001] - Abort(8074) (rank 12 in comm 0): Fatal error in PMPI_Wait", 12),
        ("[ 9812.110221] Kernel panic - not syncing: Fatal machine check", None),
        ("2026-11-23_08:41:10.110+0000: [E] File System fs unmounted by the system with return code 217 reason code 0", None),
        ("EnvironmentLocationNotFound: Not a conda environment: /opt/env/rl", None),
        ("  × No solution found when resolving dependencies:", None),
    ],
)
def test_ends_in_the_words_of_mpi_kernels_and_packages(tmp_path: Path, line: str, who: int | None) -> None:
    told = story(tmp_path, f"{line}\n")
    assert told is not None and told.first is not None and told.first.who[0].rank == who


def test_who_may_not_log_in_is_told_with_the_machine(tmp_path: Path) -> None:
    told = story(tmp_path, "node-4: Permission denied (publickey,password).\npdsh@head: node-4: ssh exited with exit code 255\n")
    assert told is not None and told.first is not None
    assert (told.first.text, told.first.who[0].node) == ("Permission denied (publickey,password).", "node-4")


@pytest.mark.parametrize(
    ("line", "label", "text"),
    [
        ("systemd[1]: rl-run.service: Main process exited, code=dumped, status=11/SEGV\n", "rl-run.service", "Main process exited"),
        (
            "ray.util.group: ray.exceptions.GetTimeoutError: Get timed out: placement group 81f was not ready in 300 s\n",
            None,
            "ray.exceptions.GetTimeoutError",
        ),
        ("ray._private.services: Unable to connect to GCS at 10.0.0.4:6379. Check that (1) the head was started\n", None, "Unable to connect to GCS"),
    ],
)
def test_names_of_units_and_modules_in_front_without_a_stamp(tmp_path: Path, line: str, label: str | None, text: str) -> None:
    told = story(tmp_path, line)
    assert told is not None and told.first is not None and text in told.first.text
    assert label is None or told.first.who[0].label == label
