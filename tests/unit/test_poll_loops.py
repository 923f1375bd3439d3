"""A poller that a sample met between two looks is told by where it waits: coming round its loop is no progress, coming back to its caller is."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits_poll import poll_edges
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, State, Verdict
from ray_rl_debug.model.snapshot import Awaited, OpenFile, Process, Socket
from tests.unit.scenes import ALL_REDUCE, Stacks, process, snapshot
from tests.unit.test_coroutines import task

EXECUTOR = "areal/infra/workflow_executor.py"
OUTSIDE = f"WorkflowExecutor.prepare_batch@{EXECUTOR}:1328 main@/job/train.py:95"
POLLS = f"BatchTaskDispatcher.active_submit_and_wait@{EXECUTOR}"
LOOKS = f"BatchTaskDispatcher.wait_results@{EXECUTOR}"
WAITS = f"Condition.wait@threading.py:331 {LOOKS}:587 {POLLS}:704 {OUTSIDE}"
BETWEEN = {
    "looks": f"{LOOKS}:577 {POLLS}:704 {OUTSIDE}",
    "takes its lock": f"Condition.__enter__@threading.py:281 {LOOKS}:573 {POLLS}:704 {OUTSIDE}",
    "asks what it may admit": f"StalenessManager.get_pending_limit@areal/infra/staleness_manager.py:70 {POLLS}:679 {OUTSIDE}",
    "admits": f"BatchTaskDispatcher.submit_task_input@{EXECUTOR}:540 {POLLS}:697 {OUTSIDE}",
    "goes round": f"{POLLS}:676 {OUTSIDE}",
}
TRAINS = "train@/job/train.py:110 main@/job/train.py:96"
THREAD = "Thread.run@threading.py:982"
ADMITS = f"Condition.wait@threading.py:327 BatchTaskDispatcher._get_next_task_for_submission@{EXECUTOR}:448 _commit_loop@{EXECUTOR}:367 {THREAD}"
FETCHES = f"Condition.wait@threading.py:331 Queue.get@queue.py:180 Results.wait@/job/results.py:61 fetch@/job/results.py:40 {THREAD}"
READS_INPUT = f"_end_with_input@/job/train.py:113 {THREAD}"
BLOCKED = (
    "Workflow.call_tool@/job/agent.py:73 Workflow.arun_episode@/job/agent.py:58 _execute_workflow@areal/infra/workflow_executor.py:1056 "
    f"AsyncTaskRunner._run_thread@areal/infra/async_task_runner.py:291 {THREAD}"
)


INPUT = OpenFile(fd=0, path="pipe:[77]", kind="pipe", inode=77, writable=False)
"""Of standard input, whose other end was not seen: a thread of the program's own waits there, and ends no episode."""


def verdict(*stacks_of_main: str, met: Callable[[Process, Stacks], Process] = lambda one, _: one) -> tuple[Verdict, list[Cause]]:
    """AReaL's trainer, whose tool is called in the loop's own thread and never answers; the main thread as three samples met it.

    `met` changes what the samples met.
    """
    stacks = Stacks()
    others = [
        ("Thread-1 (_run_thread)", BLOCKED),
        ("Thread-2 (_commit_loop)", ADMITS),
        ("Thread-3 (_fetch_loop)", FETCHES),
        ("Thread-4", READS_INPUT),
    ]
    one = process(stacks, 200, "python", *stacks_of_main, kind="named", syscall=202, extra_threads=others)
    one = met(one, stacks)
    runs = msgspec.structs.replace(task(1, Awaited(kind="running"), "Workflow.arun_episode"), tid=1200)
    of_loop = {"wchan": "wait_woken", "syscall": 45, "syscall_arg0": 9, "run_slices": 0}
    of_fetcher = {"wchan": "futex_do_wait", "syscall": 202, "wakes_in_s": 0.03, "run_slices": 20}
    of_reader = {"wchan": "pipe_read", "syscall": 0, "syscall_arg0": 0, "run_slices": 0}
    known = {1200: of_loop, 1202: of_fetcher, 1203: of_reader}
    threads = tuple(msgspec.structs.replace(t, **known.get(t.tid, {})) for t in one.threads)  # type: ignore[arg-type]
    silent = Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:5000", remote="127.0.0.1:6000", fd=9, quiet_s=30.0)
    found = diagnose(snapshot(stacks.node([msgspec.structs.replace(one, threads=threads, async_tasks=(runs,), sockets=(silent,), files=(INPUT,))])))
    return found.verdict, [f.cause for f in found.findings]


def test_the_loop_of_a_poller_that_waits_is_blocked() -> None:
    said, causes = verdict(WAITS, WAITS, WAITS)
    assert (said.state, causes) == (State.HANG, [Cause.EVENT_LOOP_BLOCKED])


@pytest.mark.parametrize("look", range(3))
@pytest.mark.parametrize("between", BETWEEN)
def test_a_poller_between_two_looks_has_not_moved(between: str, look: int) -> None:
    met = [WAITS, WAITS, WAITS]
    met[look] = BETWEEN[between]
    said, causes = verdict(*met)
    assert (said.state, causes) == (State.HANG, [Cause.EVENT_LOOP_BLOCKED])


@pytest.mark.parametrize("look", range(3))
def test_a_poller_that_came_back_to_its_caller_has_moved(look: int) -> None:
    met = [WAITS, WAITS, WAITS]
    met[look] = TRAINS
    said, causes = verdict(*met)
    assert (said.state, causes) == (State.HEALTHY, [])


def at(look: int, of: str, **changed: object) -> Callable[[Process, Stacks], Process]:
    """One look at one thread, changed; `stack` is a text."""

    def change(one: Process, stacks: Stacks) -> Process:
        facts = {k: stacks.add(v) if k == "stack" else v for k, v in changed.items()}
        samples = list(one.samples)
        threads = tuple(msgspec.structs.replace(t, **facts) if t.name == of else t for t in samples[look].threads)  # type: ignore[arg-type]
        assert threads != samples[look].threads
        samples[look] = msgspec.structs.replace(samples[look], threads=threads)
        return msgspec.structs.replace(one, samples=tuple(samples))

    return change


@pytest.mark.parametrize("look", range(3))
@pytest.mark.parametrize("name", ["MainThread", "Thread-1 (_run_thread)"])
def test_a_thread_whose_name_one_look_did_not_read_is_the_same(name: str, look: int) -> None:
    said, causes = verdict(WAITS, WAITS, WAITS, met=at(look, name, name=None))
    assert (said.state, causes) == (State.HANG, [Cause.EVENT_LOOP_BLOCKED])


@pytest.mark.parametrize("look", range(3))
@pytest.mark.parametrize("between", ["Results.wait@/job/results.py:58 fetch@/job/results.py:40", "fetch@/job/results.py:36"])
def test_a_helper_that_comes_round_its_own_wait_brings_nothing(between: str, look: int) -> None:
    """It was given nothing within its time limit, and asks again."""
    said, causes = verdict(WAITS, WAITS, WAITS, met=at(look, "Thread-3 (_fetch_loop)", stack=f"{between} {THREAD}"))
    assert (said.state, causes) == (State.HANG, [Cause.EVENT_LOOP_BLOCKED])


@pytest.mark.parametrize("look", range(3))
def test_a_helper_that_does_something_with_what_it_was_given_goes_on(look: int) -> None:
    stores = f"store@/job/results.py:90 fetch@/job/results.py:44 {THREAD}"
    assert verdict(WAITS, WAITS, WAITS, met=at(look, "Thread-3 (_fetch_loop)", stack=stores))[0].state is State.HEALTHY


def test_another_call_of_the_poller_is_progress() -> None:
    later = BETWEEN["looks"].replace("train.py:95", "train.py:140")
    assert verdict(WAITS, WAITS, later)[0].state is State.HEALTHY


@pytest.mark.parametrize("unread", [False, True], ids=["all ranks were read", "a rank was not read"])
def test_a_launcher_of_ranks_brings_nothing(unread: bool) -> None:
    """A rank looks for a file in a loop, the others wait for it in a collective, and who started them waits for their end."""
    stacks = Stacks()
    starts = "Popen._try_wait@subprocess.py:2004 Popen.wait@subprocess.py:1264 <module>@app/train.py:57"
    launcher = process(stacks, 100, "python train.py", starts, kind="named", wchan="do_wait", syscall=61)
    looks = process(stacks, 201, "python train.py", "wait_for@app/train.py:33", kind="child", ppid=100, wchan="hrtimer_nanosleep", syscall=230)
    other = process(
        stacks, 202, "python train.py", f"{ALL_REDUCE} step@app/train.py:20", kind="child", ppid=100, wchan="futex_do_wait", rank=1, size=2
    )
    other = msgspec.structs.replace(other, samples=()) if unread else other
    view = build_view(snapshot(stacks.node([launcher, looks, other])))
    waits = [Edge(source="node1/202", target="node1/201", why=Why.COLLECTIVE, evidence="")]
    assert [e.target for e in poll_edges(view, waits)] == (["node1/100"] if unread else [])
