"""From the state of a simulated run to activities and waits, as the analysis makes them from a snapshot.

Written from the words of the law alone: it shares nothing with the simulator's own answer to what can happen next.
"""

from __future__ import annotations

from collections.abc import Callable

from oracle import program as p
from oracle.simulator import DONE, ENDED, LOST, QUEUED, UNBORN, World

from ray_rl_debug.analyze.solve import Activity, Outlook, Wait

Rights = Callable[[str], set[p.Op]]


def rights_of(world: World) -> dict[str, set[p.Op]]:
    """What each task may still do: the rest of its code; of a lane, also all that its server may be asked to do."""
    rights = {}
    for task, todo in world.todo.items():
        rights[task] = set(todo)
        for op in todo:
            if isinstance(op, p.Serve):
                rights[task] |= world.program.methods[op.server]
    return rights


class Translation:
    """What one look at a run sees. Of hidden processes it sees nothing, or only what some of their tasks seem to wait for."""

    def __init__(self, world: World, hidden: frozenset[str] = frozenset(), half_seen: bool = False) -> None:
        self.world = world
        self.hidden = {name for name, task in world.program.tasks.items() if task.process in hidden}
        self.rights = rights_of(world)
        self.activities: dict[str, Activity] = {}
        self.waits: list[Wait] = []
        for task in world.program.tasks:
            if task not in self.hidden:
                self._task(task)
            elif half_seen and (op := world.op(task)) is not None:
                self._add(task, self._waits(task, op), Outlook.UNSEEN)

    def _add(self, name: str, waits: list[tuple[str, ...]], outlook: Outlook = Outlook.STANDS) -> str:
        if name not in self.activities:
            self.activities[name] = Activity(id=name, outlook=outlook, reason="simulated")
            self.waits += [Wait(waiter=name, any_of=any_of, why="waits", evidence="simulated") for any_of in waits]
        return name

    def _could(self, does: Callable[[p.Op], bool]) -> tuple[str, ...]:
        """Everybody who may still do it; a hidden one may do anything."""
        return tuple(task for task, ops in self.rights.items() if task in self.hidden or any(map(does, ops)))

    def _killers(self, task: str) -> tuple[str, ...]:
        """Who else may end its process: any task there that may still die, and so take all others with it."""
        process = self.world.program.tasks[task].process
        return tuple(
            other for other in self._could(lambda op: isinstance(op, p.Die)) if other != task and self.world.program.tasks[other].process == process
        )

    def _at(self, task: str) -> p.Op | None:
        return None if task in self.hidden else self.world.op(task)

    def _task(self, task: str) -> None:
        status = self.world.status[task]
        if status == ENDED:
            self._add(task, [])
            return
        if status == UNBORN:
            self._add(task, [self._could(lambda op: isinstance(op, p.Spawn) and task in op.tasks)])
            return
        op = self.world.op(task)
        waits = self._waits(task, op) if op is not None else []
        has_clock = isinstance(op, p.Sleep) or getattr(op, "timeout", False)
        loop = self.world.program.tasks[task].loop
        blocker = self.world.loops.get(loop or "", task)
        if blocker != task:
            if has_clock and (waits or isinstance(op, p.Sleep)):  # the clock is one way out of each wait, the loop is needed in any case
                clock = self._add(f"clock of {task}", [], Outlook.WAKES)
                waits = [(*any_of, clock) for any_of in waits] or [(clock,)]
            self._add(task, [*waits, (self._add(f"loop {loop}", [(blocker,)]),)])
        elif isinstance(op, p.Sleep):
            self._add(task, [], Outlook.WAKES)
        elif waits:
            self._add(task, waits, Outlook.WAKES if has_clock else Outlook.STANDS)
        else:
            self._add(task, [], Outlook.MOVES)

    def _waits(self, task: str, op: p.Op) -> list[tuple[str, ...]]:
        """What an operation waits for now; nothing if it need not wait."""
        world, program = self.world, self.world.program
        if isinstance(op, p.Send):
            channel = program.channels[op.channel]
            other = self._at(channel.receiver)
            is_met = (
                isinstance(other, p.Recv) and op.channel in other.channels if channel.capacity == 0 else world.messages[op.channel] < channel.capacity
            )
            return [] if is_met else [(channel.receiver,)]
        if isinstance(op, p.Recv):
            for name in op.channels:
                other = self._at(program.channels[name].sender)
                is_offered = isinstance(other, p.Send) and other.channel == name and program.channels[name].capacity == 0
                if world.messages[name] or is_offered:
                    return []
            return [tuple(program.channels[name].sender for name in op.channels)]
        if isinstance(op, p.Join):
            missing = [member for member in program.groups[op.group] if self._at(member) != op]
            return [(self._add(f"{op.name} of {op.group}", [(member,) for member in missing]),)] if missing else []
        if isinstance(op, p.Take):
            holders = world.holders[op.resource]
            if len(holders) < program.resources[op.resource].units:
                return []
            if not program.resources[op.resource].freed_at_death:
                return [(self._add(op.resource, [tuple(holders)]),)]
            # the end of its own process helps no waiter
            beside = [h for h in holders if program.tasks[h].process == program.tasks[task].process]
            killers = [k for h in holders if h not in beside for k in self._killers(h)]
            return [(self._add(" ".join((op.resource, *beside)), [(*holders, *killers)]),)]
        if isinstance(op, p.Get):
            is_empty = world.stock[op.queue] == 0
            return [(self._add(f"items of {op.queue}", [self._could(lambda o: isinstance(o, p.Put) and o.queue == op.queue)]),)] if is_empty else []
        if isinstance(op, p.Put):
            is_full = world.stock[op.queue] == program.queues[op.queue].capacity
            return [(self._add(f"room of {op.queue}", [self._could(lambda o: isinstance(o, p.Get) and o.queue == op.queue)]),)] if is_full else []
        if isinstance(op, p.Wait):
            return [] if world.events & {*op.events} else [self._could(lambda o: isinstance(o, p.Set) and o.event in op.events)]
        if isinstance(op, p.Collect):
            calls = [self._call(ref) for ref in op.refs if world.calls.get(ref) != DONE]
            if op.any:
                return [tuple(calls)] if len(calls) == len(op.refs) else []
            return [(call,) for call in calls]
        if isinstance(op, p.Reap):
            alive = [name for name in op.tasks if name in self.hidden or world.status[name] != ENDED]
            return [(self._add(f"end of {alive}", [(name, *self._killers(name)) for name in alive]),)] if alive else []
        if isinstance(op, p.Serve):
            return [] if world.lines[op.server] else [self._could(lambda o: isinstance(o, p.Call) and o.server == op.server)]
        if isinstance(op, p.Hold):
            return []  # the loop itself is looked at for every coroutine
        return []

    def _call(self, ref: str) -> str:
        where = self.world.calls.get(ref)
        if where is None:
            return self._add(f"call {ref}", [tuple(self._call_to_come(ref, server) for server in self.world.program.servers)])
        if where == QUEUED:
            server = next(name for name, line in self.world.lines.items() if any(call.ref == ref for call in line))
            return self._add(f"call {ref}", [self.world.program.servers[server]])
        return self._add(f"call {ref}", [] if where == LOST else [(where,)])

    def _call_to_come(self, ref: str, server: str) -> str:
        """A call that was not made yet needs somebody who makes it and somebody who does it."""
        callers = self._could(lambda o: isinstance(o, p.Call) and (o.ref, o.server) == (ref, server))
        return self._add(f"call {ref} at {server}", [callers, self.world.program.servers[server]])
