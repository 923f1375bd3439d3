"""Runs a program: which moves are possible now, and what each of them does.

The clock is not modelled: whoever sleeps, or waits with a time limit, may go on at any moment by a move of the clock.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from oracle.program import (
    Beat,
    Call,
    Collect,
    Die,
    Free,
    Get,
    Give,
    Hold,
    Join,
    Op,
    Program,
    Put,
    Reap,
    Recv,
    Reply,
    Send,
    Serve,
    Set,
    Sleep,
    Spawn,
    Take,
    Wait,
)

UNBORN, ALIVE, ENDED = "unborn", "alive", "ended"
QUEUED, DONE, LOST = "(queued)", "(done)", "(lost)"
"""Where a call is, if it is not running in a lane."""


@dataclass(frozen=True)
class Move:
    """Something that may happen next."""

    movers: tuple[str, ...]
    clock: bool = False
    channel: str = ""
    """Of a receiver: the one that it takes a message from."""


class World:
    """The state of a run."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.todo = {name: task.code for name, task in program.tasks.items()}
        self.status = {name: ALIVE if task.born else UNBORN for name, task in program.tasks.items()}
        self.messages = dict.fromkeys(program.channels, 0)
        self.holders: dict[str, tuple[str, ...]] = dict.fromkeys(program.resources, ())
        self.stock = {name: queue.stock for name, queue in program.queues.items()}
        self.events: frozenset[str] = frozenset()
        self.calls: dict[str, str] = {}
        self.lines: dict[str, tuple[Call, ...]] = dict.fromkeys(program.servers, ())
        self.loops: dict[str, str] = {}
        """Loops that a coroutine blocks, and which."""

    def copy(self) -> World:
        other = object.__new__(World)
        other.__dict__.update({name: value.copy() if isinstance(value, dict) else value for name, value in vars(self).items()})
        return other

    def key(self) -> tuple[object, ...]:
        """Equal for equal states of one program."""
        return tuple(tuple(sorted(value.items())) if isinstance(value, dict) else value for value in vars(self).values() if value is not self.program)

    def op(self, task: str) -> Op | None:
        """What it is at; None before its birth and after its last operation."""
        return self.todo[task][0] if self.status[task] == ALIVE and self.todo[task] else None

    def may_run(self, task: str) -> bool:
        """Its loop, if it has one, is not blocked by another coroutine."""
        return self.loops.get(self.program.tasks[task].loop or "", task) == task

    def moves(self) -> list[Move]:
        return [move for task in self.program.tasks for move in self.moves_of(task)]

    def moves_of(self, task: str) -> Iterator[Move]:
        """The moves that this task makes; a rendezvous is the sender's, a collective that of its first member."""
        op = self.op(task)
        if self.status[task] != ALIVE or not self.may_run(task) or isinstance(op, Beat):
            return
        alone = Move((task,))
        if isinstance(op, Sleep):
            yield Move((task,), clock=True)
        elif isinstance(op, Send):
            channel = self.program.channels[op.channel]
            other = self.op(channel.receiver)
            if channel.capacity == 0 and isinstance(other, Recv) and op.channel in other.channels:
                yield Move((task, channel.receiver), channel=op.channel)
            elif self.messages[op.channel] < channel.capacity:
                yield alone
        elif isinstance(op, Recv):
            yield from (Move((task,), channel=channel) for channel in op.channels if self.messages[channel])
        elif isinstance(op, Join):
            members = self.program.groups[op.group]
            if task == members[0] and all(self.op(member) == op for member in members):
                yield Move(members)
        elif self._is_ready(task, op):
            yield alone
        if getattr(op, "timeout", False):
            yield Move((task,), clock=True)

    def _is_ready(self, task: str, op: Op | None) -> bool:
        """Of what one task does alone: it need not wait."""
        if isinstance(op, Take):
            return len(self.holders[op.resource]) < self.program.resources[op.resource].units
        if isinstance(op, Get):
            return self.stock[op.queue] > 0
        if isinstance(op, Put):
            capacity = self.program.queues[op.queue].capacity
            return capacity is None or self.stock[op.queue] < capacity
        if isinstance(op, Wait):
            return not self.events.isdisjoint(op.events)
        if isinstance(op, Collect):
            return (any if op.any else all)(self.calls.get(ref) == DONE for ref in op.refs)
        if isinstance(op, Reap):
            return all(self.status[name] == ENDED for name in op.tasks)
        if isinstance(op, Serve):
            return bool(self.lines[op.server])
        return True

    def apply(self, move: Move) -> None:
        """Do it, in place."""
        for task in move.movers:
            op = self.op(task)
            self.todo[task] = self.todo[task][1:]
            if op is None:
                self._end(task)
            elif not move.clock:
                self._do(task, op, move)

    def _do(self, task: str, op: Op, move: Move) -> None:
        if isinstance(op, Send) and len(move.movers) == 1:
            self.messages[op.channel] += 1
        elif isinstance(op, Recv) and len(move.movers) == 1:
            self.messages[move.channel] -= 1
        elif isinstance(op, Take):
            self.holders[op.resource] = tuple(sorted((*self.holders[op.resource], task)))
        elif isinstance(op, Give):
            holders = list(self.holders[op.resource])
            if task in holders:
                holders.remove(task)
            self.holders[op.resource] = tuple(holders)
        elif isinstance(op, Get):
            self.stock[op.queue] -= 1
        elif isinstance(op, Put):
            self.stock[op.queue] += 1
        elif isinstance(op, Set):
            self.events |= {op.event}
        elif isinstance(op, Call):
            if op.ref not in self.calls:
                self.calls[op.ref] = QUEUED
                self.lines[op.server] += (op,)
        elif isinstance(op, Serve):
            call, *rest = self.lines[op.server]
            self.lines[op.server] = tuple(rest)
            self.calls[call.ref] = task
            self.todo[task] = (*call.code, Reply(call.ref), op)
        elif isinstance(op, Reply):
            self.calls[op.ref] = DONE
        elif isinstance(op, Spawn):
            self.status.update({name: ALIVE for name in op.tasks if self.status[name] == UNBORN})
        elif isinstance(op, Hold):
            self.loops[self.program.tasks[task].loop or ""] = task
        elif isinstance(op, Free):
            self._free(task)
        elif isinstance(op, Die):
            process = self.program.tasks[task].process
            for name, other in self.program.tasks.items():
                if other.process == process:
                    self._end(name)
                    self.holders.update(
                        {
                            resource: tuple(holder for holder in holders if holder != name)
                            for resource, holders in self.holders.items()
                            if self.program.resources[resource].freed_at_death
                        }
                    )

    def _free(self, task: str) -> None:
        self.loops = {loop: holder for loop, holder in self.loops.items() if holder != task}

    def _end(self, task: str) -> None:
        self.status[task] = ENDED
        self.todo[task] = ()
        self._free(task)
        self.calls.update({ref: LOST for ref, where in self.calls.items() if where == task})


def run(world: World, rng: random.Random) -> Iterator[Move]:
    """Run to the stop, where nothing can happen any more; each move is told before it is done."""
    while moves := world.moves():
        move = rng.choice(moves)
        yield move
        world.apply(move)
