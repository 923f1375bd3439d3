"""Any bytes at all in the place of each message: only our own error comes out, and the time grows with the length, not faster."""

from __future__ import annotations

import random
import struct
import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ray_rl_debug.cluster import driver_messages
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.watch import wire
from ray_rl_debug.watch.node_watch import WatchOrder
from ray_rl_debug.watch.seal import KNOCK_BYTES, Opener, Sealer, WireError, check_answer, invite, read_knock
from ray_rl_debug.watch.signals import GpuSign, Known, NodeReading, Sign

KEY = bytes(32)
MESSAGES: tuple[msgspec.Struct, ...] = (
    wire.Hello(pid=1, has_pyspy=True),
    wire.Read(order=WatchOrder(companion="c", drivers=(1,), skip=(2,), skip_on=("a", None))),
    wire.PySpy(packed=b"abc"),
    wire.Ping(number=1),
    wire.Collect(ticket=1, options=CollectOptions(pids=(1, 2), node_id="a")),
    wire.FinishEarly(ticket=1),
    wire.EndDriver(pid=1, start_ticks=2),
    wire.Reading(
        reading=NodeReading(
            span_s=1.0,
            signs=(Sign(pid=1, state="S", cpu=0.5, title="ray::A.b"),),
            known=(Known(pid=1, born=2, kind="driver", ppid=0, title="t"),),
            gpus=(GpuSign(index=0, utilization=0.5),),
        ),
        no_room="why",
    ),
    wire.Installed(done=True),
    wire.Pong(number=1, time_s=2.0),
    wire.Collected(ticket=1, data=b"x", reason=None),
    wire.DriverEnded(done=False),
)
DEEP = (
    b"\x91" * 100_000,
    b"\x81\xa1a" * 100_000,
    b"\x82\xa4type" * 50_000,
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\x0f\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",
)
RIGHT = [(wire.decode_order if isinstance(m, wire.Order) else wire.decode_answer, wire.encode(m)) for m in MESSAGES]


@pytest.mark.parametrize(("decode", "body"), RIGHT, ids=[type(m).__name__ for m in MESSAGES])
def test_damaged_messages(decode: object, body: bytes) -> None:
    """A message is damaged: bytes changed, left out, put in, cut off, nested without end, or announced with billions of parts.

    It is read, or refused with our own error, whatever was done to it.
    """
    assert callable(decode)
    decode(body)
    dice = random.Random(1)
    damaged = [body[:n] for n in range(len(body))] + [body + deep for deep in DEEP] + list(DEEP)
    damaged += [bytes([0x80 | (body[0] & 15) + 1]) + b"\xa2zz" + deep + body[1:] for deep in DEEP]
    for _ in range(3000):
        changed = bytearray(body)
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(changed) + 1)
            changed[at : at + dice.randint(0, 2)] = dice.randbytes(dice.randint(0, 2))
        damaged.append(bytes(changed))
    for one in damaged:
        try:
            decode(one)
        except WireError:
            pass


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    """Bytes that never were a message.

    Each reader refuses them with our own error or waits for more.
    """
    invitation = invite("s", "n")
    for read in (
        wire.decode_order,
        wire.decode_answer,
        read_knock,
        lambda d: check_answer(invitation, bytes(32), d),
        lambda d: Opener(KEY, 1000).add(d),
        lambda d: read_knock((d + bytes(KNOCK_BYTES))[:KNOCK_BYTES]),
        lambda d: driver_messages.decode(d, driver_messages.Message),
        lambda d: driver_messages.decode(d, driver_messages.Order),
    ):
        try:
            read(data)
        except (WireError, driver_messages.DamagedMessageError):
            pass


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=12), st.data())
def test_messages_in_pieces(bodies: list[bytes], data: st.DataObject) -> None:
    """Messages come in pieces of any length; one is left out, said twice, moved or changed.

    What was sealed comes out in its order, and nothing after the first that is not in its place.
    """
    sealer = Sealer(KEY)
    sealed = [sealer.seal(body) for body in bodies]
    harm = data.draw(st.sampled_from(["none", "left out", "twice", "swapped", "changed"])) if len(sealed) > 1 else "none"
    at = data.draw(st.integers(0, max(0, len(sealed) - 2)))
    sent = list(sealed)
    if harm == "left out":
        del sent[at]
    elif harm == "twice":
        sent.insert(at, sent[at])
    elif harm == "swapped":
        sent[at], sent[at + 1] = sent[at + 1], sent[at]
    elif harm == "changed":
        place = data.draw(st.integers(0, len(sent[at]) - 1))
        sent[at] = sent[at][:place] + bytes([sent[at][place] ^ 0x55]) + sent[at][place + 1 :]
    stream = b"".join(sent)
    opener, found = Opener(KEY, 1000), []
    try:
        while stream:
            size = data.draw(st.integers(1, max(1, len(stream))))
            found += opener.add(stream[:size])
            stream = stream[size:]
    except WireError:
        assert harm != "none"
    assert found == bodies[: len(found)]
    assert harm != "none" or found == bodies
    assert harm == "none" or len(found) <= at + 1, "the one that is said twice is right once"


def test_time_is_linear() -> None:
    """Large messages come in very small pieces, and very many small ones at once.

    Sixteen times as much takes about sixteen times as long.
    """

    def seconds(size: int, piece: int) -> float:
        sealer, opener = Sealer(KEY), Opener(KEY, 1 << 30)
        large = sealer.seal(bytes(size)) + b"".join(sealer.seal(bytes(40)) for _ in range(size // 400))
        began = time.thread_time()
        count = sum(len(opener.add(large[i : i + piece])) for i in range(0, len(large), piece))
        assert count == 1 + size // 400
        return time.thread_time() - began

    assert min(seconds(16 << 18, 1 << 8) for _ in range(3)) < 16 * 4 * max(0.002, min(seconds(1 << 18, 1 << 8) for _ in range(3)))
    assert min(seconds(16 << 18, 1 << 24) for _ in range(3)) < 16 * 4 * max(0.002, min(seconds(1 << 18, 1 << 24) for _ in range(3)))
    body = struct.pack(">BI", 0xDD, 100_000) + b"\x01" * 100_000
    began = time.thread_time()
    for decode in (wire.decode_order, wire.decode_answer):
        with pytest.raises(WireError):
            decode(body * 50)
    assert time.thread_time() - began < 1.0
