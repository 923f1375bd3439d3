"""The companion beside real runs on real clusters: what it sees, how soon, and what it survives."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from integration.clusters import cluster, environment, processes_titled, program, state_of, wait_for

from ray_rl_debug.capture.cluster import ClusterOptions, take_snapshot
from ray_rl_debug.model.codec import decode_report, read_snapshot
from ray_rl_debug.model.report import State
from ray_rl_debug.watch.history import Event

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

DETECTED_S = 15.0
TOLD_S = 20.0
SLACK = float(os.environ.get("RAYRL_DEBUG_TEST_SLACK", "1.5"))
"""A test machine may be loaded: the bounds are those of a quiet one times this."""
HOOK = 'cat "$RAYRL_DEBUG_REPORT" > "{0}/told.json"; echo "$RAYRL_DEBUG_STALLED_S $RAYRL_DEBUG_RULE" >> "{0}/told"'
WATCHER = "watch.watcher import main"


def environ_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError:
        return ""


def agents_of(raylets: list[int]) -> list[int]:
    """Our agents on these raylets."""
    return [pid for pid in processes_titled("ray::RayRlDebugAgent") if any(f"RAY_RAYLET_PID={r}\0" in environ_of(pid) for r in raylets)]


class Companion:
    """A companion as a process, and what it said."""

    def __init__(self, address: str, folder: Path, *more: str, env: dict[str, str] | None = None) -> None:
        self.log = folder / f"log{time.monotonic_ns()}"
        self._mark = f"WATCH_TEST={uuid.uuid4().hex}"
        name, _, value = self._mark.partition("=")
        env = {**(env or environment()), name: value}
        argv = [sys.executable, "-m", "ray_rl_debug", "watch", "--address", address, "-o", str(folder / "out"), *more]
        with self.log.open("w") as out:
            self.process = subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT, env=env, start_new_session=True)

    def said(self, part: str, times: int = 1) -> bool:
        return self.log.read_text(errors="replace").count(part) >= times

    def wait_for(self, part: str, seconds: float, times: int = 1) -> None:
        until = time.monotonic() + seconds
        while not self.said(part, times):
            text = self.log.read_text(errors="replace")
            assert time.monotonic() < until, f"{part!r} was not said in {seconds:.0f} s:\n{text[-3000:]}"
            assert self.process.poll() is None or self.said(part, times), f"the companion ended with {self.process.returncode}:\n{text[-3000:]}"
            time.sleep(0.1)

    def watchers(self) -> set[int]:
        """Its watchers on this machine."""
        return {pid for pid in processes_titled(WATCHER) if self._mark in environ_of(pid)}

    def worker(self) -> int:
        """The one that works; the one that was started only keeps it alive."""
        return int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()[0])

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(40)


@contextlib.contextmanager
def companion(address: str, folder: Path, *more: str, env: dict[str, str] | None = None) -> Iterator[Companion]:
    one = Companion(address, folder, *more, env=env)
    try:
        yield one
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(one.process.pid, signal.SIGKILL)
        one.process.wait(10)


def hang_now(folder: Path, *watched_by: Companion, steps: int = 8) -> dict[str, Any]:
    """Once these companions watch, let the run make some steps more and then hang; where and when it did."""
    for one in watched_by:
        one.wait_for("watching 1 job on", 90)
    made = len((folder / "steps.txt").read_text().splitlines()) if (folder / "steps.txt").exists() else 0
    wait_for(lambda: (folder / "steps.txt").exists() and len((folder / "steps.txt").read_text().splitlines()) >= made + steps, 90)
    (folder / "hang_now").touch()
    wait_for(lambda: (folder / "hung").exists() and (folder / "hung").read_text(), 90)
    found: dict[str, Any] = json.loads((folder / "hung").read_text())
    return found


def events(folder: Path) -> list[Event]:
    lines = [line for path in (folder / "out").glob("*/history.jsonl") for line in path.read_bytes().splitlines()]
    return sorted((msgspec.json.decode(line, type=Event) for line in lines), key=lambda e: e.time_s)


def verdict_of(folder: Path) -> Event:
    return next(e for e in events(folder) if e.kind == "verdict")


def submit(client: Any, entrypoint: str) -> str:
    """Submits a job as soon as the dashboard's agent, which starts after the cluster, is there."""
    until = time.monotonic() + 60
    while True:
        try:
            name: str = client.submit_job(entrypoint=entrypoint, runtime_env={"env_vars": {"PYTHONPATH": str(Path(__file__).parents[2])}})
            return name
        except RuntimeError as e:
            if "No available agent" not in str(e) or time.monotonic() > until:
                raise
            time.sleep(0.5)


def test_submitted_to_a_full_cluster_it_catches_the_hang_and_leaves_the_run_alone(tmp_path: Path) -> None:
    from ray.job_submission import JobStatus, JobSubmissionClient

    with cluster(1, "dashboard") as c, program("loop_program.py", c["address"], tmp_path, 2, 1, "cpus=1") as job:
        client = JobSubmissionClient(f"http://{c['dashboard']}")
        hook = HOOK.format(tmp_path)
        argv = f"{sys.executable} -m ray_rl_debug watch -o {tmp_path}/out --on-hang '{hook}'"
        submitted = submit(client, argv)
        wait_for(lambda: "watching 1 job on" in client.get_job_logs(submitted), 90)
        hung = hang_now(tmp_path)
        wait_for(lambda: (tmp_path / "told").exists(), 60)
        taken = take_snapshot(ClusterOptions(address=c["address"], timeout_s=20.0))
        kinds = {p.title: p.kind for node in taken.nodes for p in node.processes}
        assert {kinds[title] for title in ("ray::DashboardAgent", "ray::JobSupervisor")} == {"ray-system"}
        told_s = (tmp_path / "told").stat().st_mtime
        verdict = verdict_of(tmp_path)
        detected_s = verdict.time_s - verdict.numbers["look_s"] - hung["time_s"]
        assert detected_s <= DETECTED_S * SLACK
        assert told_s - hung["time_s"] <= TOLD_S * SLACK
        report = decode_report((tmp_path / "told.json").read_bytes())
        assert report.verdict.state is State.HANG
        assert [w.pid for w in report.findings[0].who] == [hung["pid"]]
        assert verdict.folder is not None
        folder = next((tmp_path / "out").glob("*/history.jsonl")).parent / verdict.folder
        wait_for(lambda: (folder / "run.pftrace").exists(), 30)
        assert {p.name for p in folder.iterdir()} >= {"snapshot.json.gz", "report.json", "report.txt", "report.html", "run.pftrace"}
        wait_for(lambda: all(state_of(pid) == "S" for pid in job["pids"]), 15)  # a further look may be at work

        before = len((tmp_path / "steps.txt").read_text().splitlines())
        (tmp_path / "answer").touch()
        wait_for(lambda: len((tmp_path / "steps.txt").read_text().splitlines()) >= before + 3, 60)
        assert all(state_of(pid) is not None for pid in job["pids"])
        wait_for(lambda: "progress again" in client.get_job_logs(submitted), 30)
        (tmp_path / "end").touch()
        wait_for(lambda: client.get_job_status(submitted) not in (JobStatus.RUNNING, JobStatus.PENDING), 90)
        assert client.get_job_status(submitted) == JobStatus.SUCCEEDED, client.get_job_logs(submitted)[-2000:]
        assert (tmp_path / "told").read_text().count("\n") == 1


@pytest.mark.slow
def test_killed_it_is_started_again_and_two_do_not_disturb_each_other(tmp_path: Path) -> None:
    with cluster(2) as c, program("loop_program.py", c["address"], tmp_path, 4, 1) as job:
        other = tmp_path / "other"
        other.mkdir()
        with companion(c["address"], tmp_path, "--on-hang", HOOK.format(tmp_path)) as first, companion(c["address"], other) as second:
            hung = hang_now(tmp_path, first, second)
            first.wait_for("waits at a socket", 60)
            second.wait_for("waits at a socket", 60)
            wait_for(lambda: (tmp_path / "told").exists(), 30)
            os.kill(first.worker(), signal.SIGKILL)  # no farewell, its watchers lose it
            first.wait_for(f"watching job {job['job']} again", 60)
            first.end(signal.SIGKILL)
            wait_for(lambda: not first.watchers(), 30)
            assert len(second.watchers()) == 2
            with companion(c["address"], tmp_path, "--on-hang", HOOK.format(tmp_path)) as third:
                third.wait_for(f"watching job {job['job']} again", 60)
                third.wait_for("still: ", 60)
                (tmp_path / "answer").touch()
                third.wait_for("progress again", 60)
                second.wait_for("progress again", 60)
                assert (tmp_path / "told").read_text().count("\n") == 1  # the successor knew that people were told
                assert third.end() == 0
                assert second.end() == 0
        assert [e.kind for e in events(tmp_path) if e.kind in ("started", "verdict")] == ["started", "verdict", "started", "started"]
        report = decode_report((tmp_path / "told.json").read_bytes())
        assert [w.pid for w in report.findings[0].who] == [hung["pid"]]
        assert not second.watchers() | third.watchers()


def test_watcher_killed_and_node_lost_during_the_hang(tmp_path: Path) -> None:
    with cluster(3) as c, program("loop_program.py", c["address"], tmp_path, 3, 1) as job:
        with companion(c["address"], tmp_path, "--stall-floor", "25") as one:
            hung = hang_now(tmp_path, one)
            assert len(one.watchers()) == 3
            os.kill(min(one.watchers()), signal.SIGKILL)
            free = next(r for r in reversed(c["raylets"][1:]) if not _children_of(r) & {hung["pid"]})
            os.kill(free, signal.SIGKILL)
            one.wait_for("its watcher is gone", 30)
            wait_for(lambda: any(e.kind in ("verdict", "look") and e.state == "hang" for e in events(tmp_path)), 90)
            found = next(e for e in events(tmp_path) if e.kind in ("verdict", "look") and e.state == "hang")
            assert found.folder is not None
            folder = next((tmp_path / "out").glob("*/history.jsonl")).parent / found.folder
            snapshot = read_snapshot(folder / "snapshot.json.gz")
            assert hung["pid"] in {p.pid for n in snapshot.nodes for p in n.processes}
            assert state_of(hung["pid"]) == "S"
            assert one.process.poll() is None
        assert job["driver"]


def _children_of(raylet: int) -> set[int]:
    return {int(p) for p in Path(f"/proc/{raylet}/task/{raylet}/children").read_text().split()}


def test_full_output_disk_keeps_what_can_be_kept(tmp_path: Path) -> None:
    disk = tmp_path / "out"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24k", "none", str(disk)], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("this machine lets nobody mount a small disk")
    try:
        with cluster(1) as c, program("loop_program.py", c["address"], tmp_path, 2, 1):
            env = environment(TMPDIR=str(tmp_path))
            with companion(c["address"], tmp_path, "--on-hang", HOOK.format(tmp_path), env=env) as one:
                hung = hang_now(tmp_path, one)
                one.wait_for("No space left on device", 60)
                wait_for(lambda: (tmp_path / "told").exists(), 30)
                kept = [*tmp_path.glob("rayrl-debug-watch-*/snapshot.json.gz"), *disk.glob("*/*/snapshot.json.gz")]
                assert kept
                assert hung["pid"] in {p.pid for n in read_snapshot(kept[0]).nodes for p in n.processes}
                assert one.process.poll() is None
                assert one.end() == 1
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def test_ends_with_the_job_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with cluster(1) as c, program("loop_program.py", c["address"], tmp_path, 2, 1) as job:
        with companion(c["address"], tmp_path, "--job", job["job"]) as one:
            wait_for(one.watchers, 60)
            wait_for(lambda: (tmp_path / "steps.txt").exists(), 60)
            (tmp_path / "end").touch()
            assert one.process.wait(60) == 0
        assert one.said("the job has ended")
        wait_for(lambda: not one.watchers(), 10)
        assert not agents_of(c["raylets"])


@pytest.mark.slow
def test_checkpoint_that_only_moves_bytes_is_no_stall(tmp_path: Path) -> None:
    long_s = 2 * DETECTED_S  # a run with steps of a second that shows nothing at all is called hung in half that time
    with cluster(1) as c, program("loop_program.py", c["address"], tmp_path, 2, 1):
        with companion(c["address"], tmp_path) as one:
            one.wait_for("watching 1 job on", 90)
            wait_for(lambda: (tmp_path / "steps.txt").exists() and len((tmp_path / "steps.txt").read_text().splitlines()) >= 8, 90)
            (tmp_path / "save_now").touch()
            wait_for((tmp_path / "checkpoint.bin").exists, 30)
            began = time.time()
            wait_for(lambda: time.time() - began > long_s, 2 * long_s)
            made = (tmp_path / "steps.txt").read_text()
            assert time.time() - float(made.split()[-1]) > long_s
            (tmp_path / "save_now").unlink()
            wait_for(lambda: len((tmp_path / "steps.txt").read_text()) > len(made), 30)
            assert one.end() == 0
    assert [e.text for e in events(tmp_path) if e.kind == "verdict" or e.state == "hang"] == []


def test_job_that_ends_well_without_a_step_is_told(tmp_path: Path) -> None:
    hook = f'echo "$RAYRL_DEBUG_STATE $RAYRL_DEBUG_RULE" >> "{tmp_path}/told"'
    with cluster(1) as c, program("loop_program.py", c["address"], tmp_path, 2, 1, "steps=0") as job:
        with companion(c["address"], tmp_path, "--job", job["job"], "--on-hang", hook) as one:
            one.wait_for("watching 1 job on", 90)
            (tmp_path / "end").touch()
            assert one.process.wait(60) == 0
        assert one.said("without a single training step")
        assert (tmp_path / "told").read_text() == "finished RRD206\n"
        assert verdict_of(tmp_path).state == "finished"


@pytest.mark.slow
def test_of_two_jobs_the_hung_one_is_named_and_stopped_where_asked(tmp_path: Path) -> None:
    well = tmp_path / "well"
    well.mkdir()
    with (
        cluster(1) as c,
        program("loop_program.py", c["address"], well, 2, 1) as healthy,
        program("loop_program.py", c["address"], tmp_path, 2, 1) as job,
    ):
        with companion(c["address"], tmp_path, "--stop-job", "--once-hung", "stay") as one:
            one.wait_for("watching 2 jobs on", 90)
            hung = hang_now(tmp_path)
            one.wait_for(f"job {job['job']}: asked its driver to end", 150)
            wait_for(lambda: state_of(job["driver"]) in (None, "Z"), 30)
            assert state_of(healthy["driver"]) is not None
            wait_for(lambda: state_of(hung["pid"]) in (None, "Z"), 30)
            assert all('"verdict"' not in path.read_text() for path in (tmp_path / "out").glob(f"job-{healthy['job']}*/history.jsonl"))
            one.wait_for(f"job {job['job']}: the job has ended", 60)
            assert one.process.poll() is None


def test_watchers_of_far_nodes_are_started_through_ray(tmp_path: Path) -> None:
    from ray_rl_debug.capture.cluster import ClusterOptions
    from ray_rl_debug.ray_state.roll_call import call_roll
    from ray_rl_debug.watch.crew import look_options
    from ray_rl_debug.watch.node_watch import WatchOrder
    from ray_rl_debug.watch.watchers import WatcherCrew

    os.environ.update(environment())
    with cluster(2) as c, program("loop_program.py", c["address"], tmp_path, 2, 1) as job:
        alive = [n for n in call_roll(c["address"]).nodes if n.alive]
        nodes = {n.node_id: (f"node{i}", n.ip) for i, n in enumerate(alive)}
        options = ClusterOptions(address=c["address"], collect=look_options(2, 0.2), timeout_s=20.0)
        crew = WatcherCrew(options, lambda: nodes, "test", host=alive[0].ip, here=dict)
        try:
            order = WatchOrder(companion="test", drivers=(job["driver"],))
            seen: dict[str, set[int]] = {}

            def both() -> bool:
                crew.refresh()
                for node, reading in crew.read(order)[0].items():
                    seen.setdefault(node, set()).update(k.pid for k in reading.known or ())
                return len(seen) == 2 and set(job["pids"]) <= set().union(*seen.values())

            wait_for(both, 120)
            wait_for(lambda: not agents_of(c["raylets"]), 30)  # the agents are gone, the watchers stay
            snapshot = crew.gather(None)
            assert {n.name for n in snapshot.nodes}
            assert set(job["pids"]) <= {p.pid for n in snapshot.nodes for p in n.processes if p.samples}
            assert len(snapshot.clocks) >= 2
        finally:
            crew.stop()
