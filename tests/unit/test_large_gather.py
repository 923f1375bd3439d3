"""What keeps a gather of a thousand nodes small and short: folded threads, equal values once, messages that wait, and an end to waiting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ray_rl_debug.capture import node_messages
from ray_rl_debug.capture.node_messages import NodeMessages
from ray_rl_debug.capture.patience import Patience
from ray_rl_debug.collect.folding import fold_threads
from ray_rl_debug.model import codec
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.node_tables import NodeTables
from ray_rl_debug.model.packed_node import LEAST_FACT_BYTES, Unpacking, pack_node, to_tables
from ray_rl_debug.model.packed_numbers import pack_fractions, pack_lists, pack_numbers, unpack_lists, unpack_numbers
from ray_rl_debug.model.snapshot import Frame, Local, Node, Process, Sample, Thread, ThreadSample

CASES = Path(__file__).resolve().parent.parent / "cases"


def asleep(tid: int, comm: str = "event_engine", **more: object) -> Thread:
    return Thread(**{"tid": tid, "comm": comm, "state": "S", "wchan": "futex", "syscall": 202, "cpu_s": 0.0, "run_slices": 6, **more})  # type: ignore[arg-type]


def worker(*threads: Thread) -> Process:
    sample = Sample(at_s=0.1, threads=(ThreadSample(stack=0, tid=11),))
    return Process(pid=10, title="ray::A", window_s=2.0, threads=(asleep(10), asleep(11, "python"), *threads), samples=(sample,))


def test_threads_that_rest_alike_are_one_row_and_a_count() -> None:
    folded = fold_threads(worker(asleep(20), asleep(21), asleep(22, "client.poll0", run_slices=9), asleep(23, wchan="do_epoll_wait")))
    assert [t.tid for t in folded.threads] == [10, 11, 22, 23]
    assert folded.idle_threads == {"event_engine": 2}


def test_threads_that_tell_something_keep_their_rows() -> None:
    telling = (
        asleep(30, state="D"),
        asleep(31, cpu_s=0.5),
        asleep(32, run_slices=500),
        asleep(33, queued_s=0.4),
        asleep(34, waits_on_fds=(7,)),
        asleep(35, state="T"),
    )
    process = worker(*telling)
    assert fold_threads(process) is process


def made(name: str, *, value: str = "<Condition at 0x7f00aa00>") -> bytes:
    """A node as it comes."""
    local = Local(frame=0, name="self", value=value)
    samples = tuple(Sample(at_s=i / 10, threads=(ThreadSample(stack=0, tid=11, name="MainThread", locals=(local,)),)) for i in range(3))
    processes = tuple(Process(pid=p, title="ray::Trainer.update", env={"RANK": "1", "HOME": "/root"}, samples=samples) for p in (10, 20))
    frames = (Frame(function="wait", file="threading.py", line=327),)
    return pack_node(Node(name=name, started_time_s=1.0, window_s=2.0, frames=frames, stacks=((0,),), processes=processes))


LIMIT_BYTES = 1 << 20


def unpacked(data: bytes, unpacking: Unpacking | None = None) -> Node:
    return (unpacking or Unpacking(lambda text: text)).node(codec.inflate(data), limit_bytes=LIMIT_BYTES)


def test_equal_values_are_one_object_and_nothing_changes() -> None:
    unpacking = Unpacking(lambda text: text)
    first, second = (unpacked(made(n), unpacking) for n in ("n1", "n2"))
    assert pack_node(first) == made("n1")
    assert first.processes[0].title is second.processes[1].title
    assert first.processes[0].env is first.processes[1].env
    assert first.processes[0].samples[0].threads is first.processes[1].samples[2].threads


@pytest.mark.parametrize("rule", sorted(p.name for p in CASES.iterdir() if list(p.glob("hang*.json.gz"))))
def test_recorded_nodes_come_as_they_were_sent(rule: str) -> None:
    for case in sorted((CASES / rule).glob("*.json.gz")):
        for node in codec.read_snapshot(case).nodes:
            assert Unpacking(lambda text: text).node(to_tables(node), limit_bytes=1 << 28) == node


def test_a_node_in_plain_json_is_read_too() -> None:
    plain = codec.encode(unpacked(made("n1")))
    assert Unpacking(lambda text: text).node(plain, limit_bytes=LIMIT_BYTES) == unpacked(made("n1"))


def test_text_is_changed_wherever_it_stands() -> None:
    node = unpacked(made("n1", value="password=hunter2"), Unpacking(lambda text: text.replace("hunter2", "***")))
    assert b"hunter2" not in codec.encode(node)
    assert codec.encode(node).count(b"password=***") == 6


def opened(data: bytes) -> NodeTables:
    return msgspec.msgpack.decode(codec.inflate(data), type=NodeTables)


def changed(given: NodeTables, table: str, **fields: object) -> NodeTables:
    """The tables with one of them changed."""
    return msgspec.structs.replace(given, tables={**given.tables, table: msgspec.structs.replace(given.tables[table], **fields)})


def read(given: NodeTables) -> Node:
    return Unpacking(lambda text: text).node(msgspec.msgpack.encode(given), limit_bytes=LIMIT_BYTES)


@pytest.mark.parametrize(
    "damaged",
    [
        lambda whole: changed(whole, "Process", columns={"title": pack_numbers([1])}),
        lambda whole: changed(whole, "Process", columns={"title": b"B\x01\x01\x01"}),
        lambda whole: changed(whole, "Process", columns={"title": b"H\x01\x00\x01"}),
        lambda whole: changed(whole, "Process", columns={"title": b"Q" + bytes(16)}),
        lambda whole: changed(whole, "Process", columns={"title": b""}),
        lambda whole: changed(whole, "Process", columns={"title": pack_numbers([1, 9_999])}),
        lambda whole: changed(whole, "Process", columns={"samples": pack_numbers([2, 7])}),
        lambda whole: changed(whole, "Sample", lists=pack_numbers([0, 3, 0])),
        lambda whole: changed(whole, "Sample", lists=pack_numbers([0])),
        lambda whole: changed(whole, "Sample", lengths=pack_numbers([2])),
        lambda whole: changed(whole, "Node", rows=b"[]"),
        lambda whole: changed(whole, "Node", rows=b"[{"),
        lambda whole: msgspec.structs.replace(whole, tables={n: t for n, t in whole.tables.items() if n != "Sample"}),
        lambda whole: msgspec.structs.replace(whole, tables={}),
        lambda whole: msgspec.structs.replace(whole, settings=[([1, 2], [1])]),
        lambda whole: msgspec.structs.replace(whole, settings=[([0], [1])]),
        lambda whole: msgspec.structs.replace(whole, text_lists=[[-1]]),
        lambda whole: msgspec.structs.replace(whole, shares=b"half"),
        lambda whole: msgspec.structs.replace(whole, shares=pack_fractions([float("inf")])),
        lambda whole: msgspec.structs.replace(whole, texts=[None]),
        lambda whole: msgspec.structs.replace(whole, node_tables=1),
    ],
)
def test_damaged_tables_are_told(damaged: Callable[[NodeTables], NodeTables]) -> None:
    whole = opened(made("n1"))
    assert read(whole) == unpacked(made("n1"))
    with pytest.raises(UnreadableFileError, match="not a node's facts"):
        read(damaged(whole))


def test_rows_that_stand_in_many_places_count_in_each() -> None:
    whole = opened(made("n1"))
    for name in ("ThreadSample", "Sample", "Process"):
        table = whole.tables[name]
        lists = unpack_lists(table.lengths, table.lists, range(1000))
        lengths, places = pack_lists([places * 100 for places in lists])
        whole = changed(whole, name, lengths=lengths, lists=places)
    with pytest.raises(UnreadableFileError, match="12060202 facts"):
        read(whole)


def test_size_is_counted_exactly_only_where_the_longest_lists_would_be_too_many() -> None:
    """One process has many threads, a hundred others have none: a guess from the longest lists alone would refuse the node."""
    threads = tuple(asleep(tid) for tid in range(900))
    processes = (Process(pid=1, title="a", threads=threads), *(Process(pid=pid, title="b") for pid in range(2, 102)))
    node = Node(name="n1", started_time_s=1.0, window_s=2.0, processes=processes)
    assert Unpacking(lambda text: text).node(to_tables(node), limit_bytes=1100 * LEAST_FACT_BYTES) == node
    with pytest.raises(UnreadableFileError, match="1002 facts"):
        Unpacking(lambda text: text).node(to_tables(node), limit_bytes=1000 * LEAST_FACT_BYTES)


@pytest.mark.parametrize("numbers", [[], [0], [255, 0], [256], [65_535, 3], [65_536, 1], [4_294_967_295]])
def test_numbers_come_back_as_they_were(numbers: list[int]) -> None:
    assert list(unpack_numbers(pack_numbers(numbers))) == numbers


def test_nodes_with_other_facts_in_the_same_places_do_not_mix() -> None:
    unpacking = Unpacking(lambda text: text)
    first, second = made("n1", value="one"), made("n2", value="two")
    for data, name, value in ((first, "n1", "one"), (second, "n2", "two"), (first, "n1", "one")):
        node = unpacked(data, unpacking)
        assert (node.name, node.processes[1].samples[2].threads[0].locals[0].value) == (name, value)


def test_secrets_of_a_node_that_did_not_mask_them() -> None:
    found: dict[str, Node] = {}
    messages = NodeMessages(1, lost=lambda node, why: None, found=found.__setitem__)
    messages.add("n1", made("n1", value="api_key=sk-abcdefghij0123456789klmn"))
    messages.decode_all()
    assert b"sk-abcdefghij" not in codec.encode(found["n1"])


def test_a_node_may_not_fill_the_memory() -> None:
    lost: dict[str, str] = {}
    found: dict[str, Node] = {}
    messages = NodeMessages(1250, lost=lost.__setitem__, found=found.__setitem__)
    bomb = pack_node(Node(name="x" * (9 << 20), started_time_s=1.0, window_s=2.0))
    messages.add("bomb", bomb)
    messages.add("good", made("good"))
    messages.decode_all()
    assert lost["bomb"].startswith("its facts came damaged (more than 8 MiB when unpacked")
    assert list(found) == ["good"]


def test_messages_that_wait_have_a_bound() -> None:
    lost: dict[str, str] = {}
    messages = NodeMessages(2, lost=lost.__setitem__, found=lambda node, facts: None)
    messages.add("first", bytes(node_messages.PACKED_BYTES))
    messages.add("second", made("second"))
    assert "no room for them" in lost["second"]


def test_nobody_is_waited_for_when_nearly_all_have_answered() -> None:
    patience = Patience(100)
    patience.window_ends(2.0)
    for i in range(89):
        patience.answered(2.0 + i / 100)
    assert patience.ends_at() is None
    patience.answered(3.0)
    assert patience.ends_at() == 2.0 + 6.0
    slow = Patience(100)
    slow.window_ends(2.0)
    for _ in range(90):
        slow.answered(9.0)
    assert slow.ends_at() == 2.0 + 3 * 7.0


def test_nearly_all_have_answered_when_nobody_else_does_for_a_while() -> None:
    patience = Patience(100)
    patience.window_ends(2.0)
    for i in range(89):
        patience.answered(2.0 + i / 100)
    assert not patience.is_for_few(5.0)
    patience.answered(5.0)
    assert not patience.is_for_few(5.4)
    assert patience.is_for_few(5.6)
    patience.answered(5.6)
    assert not patience.is_for_few(6.0)


def test_of_few_nodes_each_is_waited_for() -> None:
    patience = Patience(9)
    patience.window_ends(2.0)
    for _ in range(9):
        patience.answered(3.0)
    assert patience.ends_at() is None
    assert not patience.is_for_few(30.0)
