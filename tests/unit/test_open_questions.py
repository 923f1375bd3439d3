"""Why an answer is open, and where to look first: who was not seen, then what was not read, then the window."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import ALL_REDUCE, MAIN, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.diagnosis.open_questions import ended, most_suspicious, why_open
from ray_rl_debug.model.snapshot import OwnedTask, Process, RayState
from ray_rl_debug.rules.scene import Scene

WAIT, SLEEP = 61, 230
POPEN = "Popen._try_wait@subprocess.py:2004 Popen.wait@subprocess.py:1264 main@app/train.py:9"


def scene(stacks: Stacks, *processes: Process, ray: RayState | None = None) -> Scene:
    view = build_view(snapshot(stacks.node(processes), ray))
    waits = find_waits(view)
    return Scene(view=view, graph=waits.graph, worlds=waits.worlds, joined=waits.joined)


def parent(stacks: Stacks, child: int) -> Process:
    return process(stacks, 100, "python train.py", POPEN, kind="named", wchan="do_wait", syscall=WAIT, arg0=child)


def child(stacks: Stacks, text: str = "main@app/tool.py:3", *, syscall: int = SLEEP) -> Process:
    return process(stacks, 4000, "python tool.py", text, kind="child", ppid=100, syscall=syscall)


def test_whoever_was_not_seen_comes_first() -> None:
    stacks = Stacks()
    found = why_open(scene(stacks, parent(stacks, 3999), replace(child(stacks), samples=(), python="3.11")))
    assert (found.reason, found.next) == ("child 3999 was not seen", "rayrl-debug doctor")


def test_a_stack_that_was_not_read_is_told() -> None:
    stacks = Stacks()
    found = why_open(scene(stacks, parent(stacks, 4000), replace(child(stacks), samples=(), python="3.11")))
    assert found.reason == "no stack of tool.py (node1 pid 4000) was read"
    assert found.settles == "a longer window shows whether it ends; strace or its log shows what it does"


def test_a_call_of_the_kernel_that_was_not_read_is_told() -> None:
    stacks = Stacks()
    unread = replace(child(stacks), threads=())
    found = why_open(scene(stacks, parent(stacks, 4000), unread))
    assert (found.reason, found.settles) == ("in which call tool.py (node1 pid 4000) is was not read", "read /proc as root")


def test_where_all_was_read_the_window_is_too_short() -> None:
    stacks = Stacks()
    assert why_open(scene(stacks, parent(stacks, 4000), child(stacks))).reason == "the window is too short to tell"


def test_where_somebody_stands_other_facts_leave_the_answer_open() -> None:
    stacks = Stacks()
    stands = process(stacks, 4000, "python tool.py", "main@app/tool.py:3", kind="child", ppid=100, wchan="futex_do_wait")
    assert why_open(scene(stacks, parent(stacks, 4000), stands)).reason == "some facts leave another answer open"


@pytest.mark.parametrize(
    ("code", "said"), [(None, "has ended"), (3, "has ended with status 3"), (-9, "has ended, killed by signal 9")], ids=["unread", "status", "signal"]
)
def test_a_process_that_was_asked_for_and_has_ended(code: int | None, said: str) -> None:
    stacks = Stacks()
    dead = replace(process(stacks, 100, "python train.py", MAIN, kind="named", state="Z"), samples=(), exit_code=code)
    found = ended(scene(stacks, dead))
    assert found is not None
    assert found.reason == f"train.py (node1 pid 100) {said}"
    assert ended(scene(stacks, replace(dead, kind="child"))) is None
    assert ended(scene(stacks, child(stacks))) is None


def test_look_first_at_who_stands_and_keeps_others() -> None:
    stacks = Stacks()
    said = most_suspicious(scene(stacks, parent(stacks, 4000), child(stacks, syscall=-1)))
    assert said.startswith(". Look first at tool.py (node1 pid 4000): it is in main (tool.py:3), ")


def test_nobody_is_suspicious_where_all_go_on() -> None:
    stacks = Stacks()
    assert most_suspicious(scene(stacks, process(stacks, 100, "python train.py", "a@app/a.py:1", "b@app/b.py:2", "c@app/c.py:3", kind="named"))) == ""


def test_look_first_at_the_waiter_of_one_that_was_not_seen() -> None:
    """Its node did not answer, say."""
    stacks = Stacks()
    driver = process(stacks, 50, "python train.py", f"{RAY_GET} main@train.py:9", kind="driver", refs=[task_id(1)])
    owned = OwnedTask(task_id=task_id(1), name="Agent.run", actor_id=f"{7:032x}")
    ray = ray_state(actors=[actor(7, "Agent", 100)], cores=[replace(core(50, owned=[owned]), kind="DRIVER")])
    said = most_suspicious(scene(stacks, driver, ray=ray))
    assert said == ". Look first at driver (node1 pid 50): it waits in ray.get in main (train.py:9), and waits for Agent"


def test_an_idle_process_is_not_looked_at_first() -> None:
    stacks = Stacks()
    rank = process(stacks, 101, "python train.py", f"{ALL_REDUCE} step@app/train.py:30", kind="named", rank=0, size=2)
    idle = process(stacks, 102, "ray::Logger", MAIN)
    assert "pid 102" not in most_suspicious(scene(stacks, idle, rank))
