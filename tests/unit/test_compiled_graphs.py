"""Places of Ray's compiled graphs, by their frames."""

from __future__ import annotations

import pytest

from ray_rl_debug.analyze.frameworks.compiled_graphs import graph_place, runs_graph
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.places import place_of
from ray_rl_debug.model.snapshot import Frame, Local, ThreadSample

READ = "get_objects@ray/_private/worker.py Channel.read@ray/experimental/channel/shared_memory_channel.py"
WRITE = "Channel.write@ray/experimental/channel/shared_memory_channel.py SynchronousWriter.write@ray/experimental/channel/common.py"
LOOP = "ExecutableTask.exec_operation@ray/dag/compiled_dag_node.py do_exec_tasks@ray/dag/compiled_dag_node.py"
CALLER = "CompiledDAG._execute_until@ray/dag/compiled_dag_node.py CompiledDAGRef.get@ray/experimental/compiled_dag_ref.py main@/srv/train.py"


def frames(text: str) -> tuple[Frame, ...]:
    return tuple(Frame(function=word.split("@")[0], file=word.split("@")[1], line=1) for word in text.split())


@pytest.mark.parametrize(
    ("stack", "kind"),
    [
        (f"{READ} {LOOP}", Kind.IDLE),
        (f"{WRITE} {LOOP}", Kind.CHANNEL),
        (f"{READ} {CALLER}", Kind.CHANNEL),
        (f"{READ.replace('Channel.', '')} {CALLER}", Kind.CHANNEL),
        ("get_objects@ray/_private/worker.py run@ray/dag/compiled_dag_node.py", Kind.WATCH),
        ("get_objects@ray/_private/worker.py CompiledDAG._monitor_failures.<locals>.Monitor.run@ray/dag/compiled_dag_node.py", Kind.WATCH),
    ],
)
def test_place(stack: str, kind: Kind) -> None:
    assert place_of(frames(stack)).kind is kind


def test_a_method_of_its_own_is_no_place_of_the_graph() -> None:
    stack = frames(f"get_objects@ray/_private/worker.py Stage.forward@/srv/stage.py {LOOP}")
    assert graph_place(stack) is None
    assert runs_graph(stack)


def test_another_execution_is_another_wait() -> None:
    stack = frames(f"{READ} {CALLER}")
    told = [
        place_of(stack, ThreadSample(stack=0, tid=1, name="MainThread", locals=(Local(frame=2, name="execution_index", value=str(n)),))).waiter
        for n in (6, 9)
    ]
    assert told == ["6", "9"]
