"""Ray's compiled graphs: who reads a channel waits for those of the graph that are elsewhere; a call that runs any function has no usual age."""

from __future__ import annotations

from msgspec.structs import replace
from scenes import Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.analyze.call_ages import call_age
from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.view import View, build_view
from ray_rl_debug.analyze.waits_graphs import graph_edges
from ray_rl_debug.model.snapshot import Local, Process, RayTask, TaskHistory

CHANNEL = "Worker.get_objects@ray/_private/worker.py:1007 Channel.read@ray/experimental/channel/shared_memory_channel.py:492"
LOOP = "exec_operation@ray/dag/compiled_dag_node.py:788 do_exec_tasks@ray/dag/compiled_dag_node.py:247"
GETS = f"{CHANNEL} CompiledDAG._execute_until@ray/dag/compiled_dag_node.py:2531 main@app/train.py:38"
READS, WORKS = f"{CHANNEL} {LOOP}", f"run@app/stage.py:22 {LOOP}"
MONITOR = ("Monitor", "get@ray/_private/worker.py:3009 CompiledDAG._monitor_failures.<locals>.Monitor.run@ray/dag/compiled_dag_node.py:2190")
DRIVER, POLICY, CRITIC = 100, 201, 202


def driver(stacks: Stacks, text: str = GETS, steps: tuple[int, ...] = (7, 7, 7)) -> Process:
    one = process(stacks, DRIVER, "python train.py", text, kind="driver", extra_threads=[MONITOR])
    samples = []
    for sample, step in zip(one.samples, steps, strict=True):
        main, *others = sample.threads
        told = (Local(frame=2, name="execution_index", value=str(step)),)
        samples.append(replace(sample, threads=(replace(main, locals=told), *others)))
    return replace(one, samples=tuple(samples))


def stage(stacks: Stacks, pid: int, *texts: str) -> Process:
    return process(stacks, pid, "ray::Stage.__ray_call__", *texts)


def view_of(stacks: Stacks, *processes: Process) -> View:
    return build_view(snapshot(stacks.node(processes)))


def waits(view: View) -> set[tuple[str, str]]:
    edges = list(graph_edges(view))
    assert all(e.why is Why.MESSAGE for e in edges)
    return {(e.source, e.target) for e in edges}


def test_who_reads_waits_for_the_one_that_is_elsewhere() -> None:
    stacks = Stacks()
    view = view_of(stacks, driver(stacks), stage(stacks, POLICY, READS), stage(stacks, CRITIC, WORKS))
    assert view.seen[f"node1/{POLICY}"].is_idle, "it waits for its next piece of work"
    assert waits(view) == {("node1/100", "node1/202"), ("node1/201", "node1/202")}


def test_a_reader_that_spins_does_not_move_but_one_that_comes_to_another_step_does() -> None:
    stacks = Stacks()
    view = view_of(stacks, replace(driver(stacks), cpu_s=1.5), stage(stacks, CRITIC, WORKS))
    assert view.seen["node1/100"].motion is Motion.FROZEN
    view = view_of(stacks, driver(stacks, steps=(7, 8, 9)), stage(stacks, CRITIC, WORKS))
    assert view.seen["node1/100"].motion is Motion.MOVING


def test_nobody_is_waited_for_where_all_are_at_channels() -> None:
    """So looks a graph at work whose steps are short."""
    stacks = Stacks()
    assert waits(view_of(stacks, driver(stacks), stage(stacks, POLICY, READS), stage(stacks, CRITIC, READS))) == set()


def test_calls_that_run_any_function_tell_nothing_of_each_other() -> None:
    stacks = Stacks()
    for name, usual in (("Stage.__ray_call__", None), ("Stage.step", 0.2)):
        running = RayTask(task_id=task_id(1), name=name, kind="ACTOR_TASK", state="RUNNING", state_times_s={"RUNNING": 150.0})
        ray = ray_state(
            actors=[actor(1, "Stage", CRITIC)],
            tasks=[running],
            cores=[core(CRITIC, running=[1], actor_number=1)],
            history=[TaskHistory(name=name, count=5, longest_s=0.2, usual_s=0.2)],
        )
        view = build_view(snapshot(stacks.node([stage(stacks, CRITIC, WORKS)]), ray))
        assert call_age(view, view.seen[f"node1/{CRITIC}"]).usual_s == usual
