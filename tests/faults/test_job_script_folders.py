"""Folders of rendered job scripts, run by bash as they are, with stand-ins for Slurm's commands only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ray_rl_debug.slurm.job import Job
from ray_rl_debug.slurm.render import render
from ray_rl_debug.slurm.templates import read_part

pytestmark = pytest.mark.integration

JOB_ID = "4711"
SRUN = """#!/bin/bash
# Stands for srun: runs the task here.
while [[ ${1:-} == --* ]]; do shift; done
exec "$@"
"""
TOOL = """#!/bin/bash
# Stands for rayrl-debug: notes the words it was called with, one in a line.
printf '%s\\n' "$@" "" >>"$NOTED"
"""
PROGRAM = """#!/bin/bash
# Stands for a program that starts Ray: leaves a session with a log in it.
mkdir -p "$RAY_TMPDIR/ray/session_1/logs"
ln -s session_1 "$RAY_TMPDIR/ray/session_latest"
echo x >"$RAY_TMPDIR/ray/session_1/logs/raylet.out"
echo "$RAY_TMPDIR" >"$SEEN"
"""
WRITER = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
seconds, folder = float(sys.argv[1]), sys.argv[2]
end, number = time.monotonic() + 60, 0
while time.monotonic() < end:
    try:
        os.mkdir(folder)
    except FileExistsError:
        pass
    except FileNotFoundError:
        break  # what it is in was removed
    number += 1
    if number > 1000:
        time.sleep(0.0005)
    try:
        os.close(os.open(f"{folder}/{number}", os.O_CREAT | os.O_WRONLY))
    except FileNotFoundError:
        continue
    if number == 1000:  # so many that they are not removed in one moment
        print("ready", flush=True)
        end = time.monotonic() + seconds
"""
ODD = "a b'c\"d;e$f"


@pytest.fixture
def home() -> Path:
    """A short folder, since Ray's socket paths are bounded."""
    folder = Path("/tmp") / f"f{os.getpid()}"
    folder.mkdir(mode=0o700)
    yield folder
    shutil.rmtree(folder)


def run_job(home: Path, *, temp_dir: str | None, logs: Path, framework: str = "verl-single", **env: str) -> subprocess.CompletedProcess[str]:
    programs = home / "bin"
    programs.mkdir(exist_ok=True)
    for name, text in {
        "srun": SRUN,
        "scontrol": "#!/bin/bash\necho n1\n",
        "scancel": "#!/bin/bash\n",
        "rayrl-debug": TOOL,
        "program": PROGRAM,
    }.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    script = home / "job.sbatch"
    job = Job(framework=framework, nodes=1, gpus_per_node="0", temp_dir=temp_dir, command=("program",))
    script.write_text(render(job))
    given = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(home),
        "SLURM_JOB_ID": JOB_ID,
        "SLURM_JOB_NODELIST": "n1",
        "SLURM_CPUS_PER_TASK": "1",
        "SLURM_SUBMIT_DIR": str(logs),
        "NOTED": str(home / "noted"),
        "SEEN": str(home / "seen"),
        **env,
    }
    return subprocess.run(["bash", str(script)], env=given, capture_output=True, text=True, timeout=60, check=False)


def test_a_given_temp_dir_keeps_what_is_in_it(home: Path) -> None:
    """A job script is given a folder with a checkpoint in it as ``--temp-dir``.
    The job runs in a folder of its own below it, the checkpoint stays, and only that folder goes."""
    scratch = home / "s"
    scratch.mkdir()
    (scratch / "checkpoint.pt").write_text("weights")
    done = run_job(home, temp_dir=str(scratch), logs=home / "l")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (home / "seen").read_text().strip() == f"{scratch}/rr{JOB_ID}"
    assert [p.name for p in scratch.iterdir()] == ["checkpoint.pt"]
    assert (scratch / "checkpoint.pt").read_text() == "weights"
    assert (home / "l" / "logs" / JOB_ID).is_dir()


@pytest.mark.parametrize("planted", ["link", "folder", "link in place of the mark"])
def test_a_planted_folder_is_refused(home: Path, planted: str) -> None:
    """The folder that a job would make is already there: as a link to somebody's data, or as a folder that this job did not make.
    The job is refused with that path in its output, and nothing behind it is touched."""
    scratch, data = home / "s", home / "data"
    scratch.mkdir()
    data.mkdir()
    (data / "session_1").mkdir()
    (data / "checkpoint.pt").write_text("weights")
    place = scratch / f"rr{JOB_ID}"
    if planted == "link":
        place.symlink_to(data)
    else:
        data.rename(place)
        data = place
        if planted != "folder":
            (place / f".made_for_{JOB_ID}").symlink_to(place / "checkpoint.pt")
    done = run_job(home, temp_dir=str(scratch), logs=home / "l")
    assert done.returncode == 2, done.stdout + done.stderr
    assert f"{place} cannot be made, or is not this job's" in done.stdout + done.stderr
    assert (data / "checkpoint.pt").read_text() == "weights" and (data / "session_1").is_dir()
    assert not (home / "seen").exists(), "the program ran"


def test_a_folder_where_anybody_may_rename_is_refused(home: Path) -> None:
    """The folder that is given lets everybody rename what is in it, so a neighbour could put a link in the place of the job's folder.
    The job is refused and says how to repair it."""
    scratch = home / "s"
    scratch.mkdir()
    scratch.chmod(0o777)
    done = run_job(home, temp_dir=str(scratch), logs=home / "l")
    assert done.returncode == 2
    assert f"anybody may rename what is in {scratch}" in done.stdout + done.stderr
    scratch.chmod(0o1777)
    assert run_job(home, temp_dir=str(scratch), logs=home / "l").returncode == 0
    assert list(scratch.iterdir()) == []


def test_what_an_ended_step_of_the_same_job_left_is_used_again(home: Path) -> None:
    """A step of the job was killed and left its folder; the job is then requeued.
    The next step of the same job uses and removes that folder, and a requeued job takes a new one."""
    scratch = home / "s"
    left = scratch / f"rr{JOB_ID}"
    left.mkdir(parents=True)
    (left / f".made_for_{JOB_ID}").touch()
    done = run_job(home, temp_dir=str(scratch), logs=home / "l")
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(scratch.iterdir()) == []
    done = run_job(home, temp_dir=str(scratch), logs=home / "l", SLURM_RESTART_COUNT="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (home / "seen").read_text().strip() == f"{left}-1"


def test_paths_with_spaces_and_quotes(home: Path) -> None:
    """Paths of a job hold spaces, quotes, a semicolon and a dollar sign.
    The program, the doctor and the companion get them as they are, and nothing in them is run."""
    scratch, logs = home / "s p'q", home / ODD
    scratch.mkdir()
    done = run_job(home, temp_dir=str(scratch), logs=logs)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (home / "seen").read_text().strip() == f"{scratch}/rr{JOB_ID}"
    assert list(scratch.iterdir()) == []
    folder = logs / "logs" / JOB_ID
    assert (folder / "ray-n1" if (folder / "ray-n1").exists() else next(folder.glob("ray-*"))).joinpath("raylet.out").read_text() == "x\n"
    words = (home / "noted").read_text().split("\n")
    assert words.count(str(folder / "doctor")) == 2, "the doctor of the node and the one that reads its facts"
    assert str(folder / "watch") in words
    assert f"{scratch}/rr{JOB_ID}" in words and "n1" in words


def test_a_companion_beside_a_cluster_gets_its_folder_as_it_is(home: Path) -> None:
    """The folder of a cluster's logs has a name that bash would run.
    The companion gets it as one word."""
    folder = home / ODD
    folder.mkdir()
    script = f"""side_step() {{ "${{@:2}}"; }}; IN=() WATCH_ARGS=(--quiet) HEAD=n1 SIDE=()
{read_part("find_tool")}{read_part("watch")}
wait"""
    (home / "rayrl-debug").write_text(TOOL)
    (home / "rayrl-debug").chmod(0o755)
    given = {"PATH": f"{home}:{os.environ['PATH']}", "LOG_DIR": str(folder), "RAY_ADDRESS": "10.0.0.1:6379", "NOTED": str(home / "noted")}
    subprocess.run(["bash", "-c", script], env=given, check=True, timeout=30)
    assert (home / "noted").read_text().split("\n") == ["watch", "--address", "10.0.0.1:6379", "-o", f"{folder}/watch", "--quiet", "", ""]


def test_the_roles_of_areal_look_at_the_right_folder(home: Path) -> None:
    """AReaL's own jobs source a file below a folder whose name bash would run.
    The file names that folder, and sourcing it runs nothing else."""
    folder = home / ODD
    folder.mkdir()
    given = {"PATH": os.environ["PATH"], "LOG_DIR": str(folder), "NCCL_DEBUG": "WARN"}
    subprocess.run(["bash", "-c", read_part("areal_roles") + read_part("areal_roles_watch")], env=given, check=True, timeout=30)
    told = 'source "$1"; printf %s "$rayrl_debug_dir"'
    done = subprocess.run(
        ["bash", "-c", told, "bash", str(folder / "role.sh")],
        env={"PATH": os.environ["PATH"], "SLURM_LOCALID": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert done.stdout == str(folder), done.stderr


def test_a_second_try_of_ray_start_removes_only_its_own(home: Path) -> None:
    """Ray's start failed on a node whose folder's name is a pattern, and a neighbour's process has a like name.
    Only sessions of this job's own folder are removed, and only processes that name it are ended."""
    mine, other = home / "a.c" / f"rr{JOB_ID}", home / "abc" / f"rr{JOB_ID}"
    for folder in (mine, other):
        (folder / "session_1").mkdir(parents=True)
    (mine / f".made_for_{JOB_ID}").touch()
    named = [subprocess.Popen(["bash", "-c", 'read -r _ <"$1"', f"{folder}/session_1", str(fifo(home, i))]) for i, folder in enumerate((mine, other))]
    script = f"{read_part('step_common')}\n{read_part('step_cluster')}\nTRIES=3 NAME=n1; may_try_again 1 5 && echo again"
    given = {
        "PATH": os.environ["PATH"],
        "TEMP_DIR": str(mine),
        "LOG_DIR": str(home),
        "SLURM_JOB_ID": JOB_ID,
        "COLLECT_LOGS": "0",
        "PORT_BASE": "20000",
    }
    try:
        done = subprocess.run(["bash", "-c", script], env=given, capture_output=True, text=True, check=False, timeout=60)
        assert "again" in done.stdout, done.stderr
        assert named[0].wait(10) == -9
        assert named[1].poll() is None
    finally:
        for child in named:
            child.kill()
            child.wait()
    assert not (mine / "session_1").exists() and (other / "session_1").is_dir()


@contextmanager
def written_to(folder: Path, seconds: float) -> Iterator[list[int]]:
    """Processes of a session that write into this folder of a job, each into a folder of its own, and do not heed SIGTERM."""
    folder.mkdir()
    (folder / f".made_for_{JOB_ID}").touch()
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(seconds), f"{folder}/session_{i}"], stdout=subprocess.PIPE) for i in range(3)]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
        yield [writer.pid for writer in writers]
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()


def end_step(home: Path, folder: Path, how: str) -> subprocess.CompletedProcess[str]:
    given = {
        "PATH": os.environ["PATH"],
        "TEMP_DIR": str(folder),
        "LOG_DIR": str(home),
        "SLURM_JOB_ID": JOB_ID,
        "COLLECT_LOGS": "0",
    }
    script = f"{read_part('step_common')}\nNAME=n1; {how}"
    return subprocess.run(["bash", "-c", script], env=given, capture_output=True, text=True, check=False, timeout=60)


def test_what_dies_last_still_writes(home: Path) -> None:
    """Processes of Ray write into the job's folder for one more second while it is removed.
    It is removed again until it is gone."""
    folder = home / f"rr{JOB_ID}"
    with written_to(folder, 1.0):
        done = end_step(home, folder, "remove_temp_dir")
        assert not folder.exists(), done.stdout + done.stderr
    assert done.stdout + done.stderr == ""


def test_what_does_not_end_when_a_step_leaves(home: Path) -> None:
    """Processes of Ray do not end for a minute after SIGTERM: ``ray start`` waits up to 30 s for its node to drain (Ray 2.60).
    The step gives them 3 s, kills them and removes the folder, well within Slurm's KillWait."""
    folder = home / f"rr{JOB_ID}"
    with written_to(folder, 60.0) as pids:
        began = time.monotonic()
        done = end_step(home, folder, f"CHILD={pids[0]}; leave 7")
        assert done.returncode == 7, done.stdout + done.stderr
        assert not folder.exists(), done.stdout + done.stderr
        assert time.monotonic() - began < 15


def test_a_folder_that_cannot_be_removed_is_named(home: Path) -> None:
    """The job's folder cannot be removed: the file system refuses it.
    The step tries for 2 s, says that the folder stays, and ends."""
    folder = home / f"rr{JOB_ID}"
    folder.mkdir()
    (folder / f".made_for_{JOB_ID}").touch()
    done = end_step(home, folder, "rm() { false; }; leave 7")
    assert (done.returncode, done.stdout) == (7, f"n1: Ray's folder {folder} could not be removed\n")


def fifo(home: Path, number: int) -> Path:
    """Somebody who reads it waits for ever."""
    path = home / f"fifo{number}"
    os.mkfifo(path)
    return path
