"""Who may go on from here: the simulator's own answer, by trying.

Hope asks what may become of a task if all who are free to act do whatever helps. So we let them: whoever can make a move, now or later, is
*free*. A free task gives back what it holds, lets go of its loop, answers its call, and stands ready to do any operation that it has
the right to. Each of the others is then tried alone, on a copy of the world in which the free ones help it by real moves of the
simulator: if it can make a move there, it is free too. This repeats until nobody new comes.

One order of trying decides, since no help is ever taken back: a free task only gives, and what it does for one is undone with the copy.
So whoever could be freed early can still be freed late. What the answer leaves out is haste: that two needs are met at one and the same
moment, by one helper that cannot do both. `check.py` therefore also asks the runs themselves, and for small programs all runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from operator import eq

from oracle import program as p
from oracle.simulator import ALIVE, ENDED, UNBORN, Move, World
from oracle.translation import rights_of

from ray_rl_debug.analyze.solve import Outlook


class Rest(p.Op):
    """What a free task is at between two favours."""


def prospects(world: World, hidden: frozenset[str] = frozenset()) -> dict[str, Outlook]:
    """The best that may become of each task, as far as one can know who does not see the hidden processes."""
    unseen = {name for name, task in world.program.tasks.items() if task.process in hidden}
    group = Free(world, unseen)
    best = dict.fromkeys(world.todo, Outlook.STANDS)
    for outlook in (Outlook.MOVES, Outlook.WAKES, Outlook.UNSEEN):
        if outlook is Outlook.WAKES:
            group.clock = True
        elif outlook is Outlook.UNSEEN:
            group.add(unseen)
        group.grow()
        for task in group.free:
            best[task] = max(best[task], outlook)
    return best


def freed_by(world: World, helpers: Iterable[str]) -> set[str]:
    """Who would be free if these were, the dead among them risen."""
    group = Free(world, set())
    group.add(helpers)
    group.clock = True
    group.grow()
    return group.free


class Free:
    """The free tasks of a world; all others are where they were."""

    def __init__(self, world: World, hidden: set[str]) -> None:
        self.world = world.copy()
        self.hidden = hidden
        self.rights = rights_of(world)
        self.free: set[str] = set()
        self.clock = False
        for task in hidden:
            self.world.status[task] = ALIVE
            self._rest(task)

    def add(self, tasks: Iterable[str]) -> None:
        world = self.world
        for task in set(tasks) - self.free:
            self.free.add(task)
            world.status[task] = ALIVE
            self._rest(task)
            for resource, holders in world.holders.items():
                for _ in range(holders.count(task)):
                    self._do(world, task, p.Give(resource))
            for ref in [ref for ref, where in world.calls.items() if where == task]:
                self._do(world, task, p.Reply(ref))

    def _rest(self, task: str) -> None:
        self.world.todo[task] = (Rest(),)
        self.world.loops = {loop: holder for loop, holder in self.world.loops.items() if holder != task}

    def grow(self) -> None:
        while True:
            new: set[str] = set()
            for task in self.world.todo:
                if task not in self.free | new | self.hidden:
                    new |= self._freed(task)
            if not new:
                return
            self.add(new)

    def _freed(self, task: str) -> set[str]:
        """This task, with those that move together with it, if it can move now that the free ones help."""
        world = self.world
        if world.status[task] == UNBORN:
            return {task} if self._able(lambda op: isinstance(op, p.Spawn) and task in op.tasks) else set()
        if world.status[task] == ENDED:
            return set()
        if isinstance(world.op(task), p.Beat) and world.may_run(task):
            return {task}
        op = world.op(task)
        makers = [task]  # of a rendezvous the sender, of a collective its first member
        if isinstance(op, p.Recv):
            makers += [world.program.channels[channel].sender for channel in op.channels]
        elif isinstance(op, p.Join):
            makers = [world.program.groups[op.group][0]]
        for scene in (world, self._helped(task)):
            for move in (move for maker in makers for move in scene.moves_of(maker)):
                if task in move.movers and (self.clock or not move.clock):
                    return set(move.movers) - self.free
        return set()

    def _able(self, does: Callable[[p.Op], bool]) -> list[str]:
        """The free ones who have the right to an operation; a hidden one has any."""
        return [task for task in self.world.todo if task in self.free and (task in self.hidden or any(map(does, self.rights[task])))]

    def _do(self, world: World, task: str, op: p.Op) -> None:
        """A free task does one operation, by a real move, if it can. No loop stops it: who is free has run, or was freed by decree."""
        loops, world.loops = world.loops, {}
        world.todo[task] = (op, Rest())
        move = next((move for move in world.moves_of(task) if not move.clock), None)
        if move is not None and move.movers == (task,):
            world.apply(move)
        world.todo[task] = (Rest(),)
        world.loops = loops

    def _helped(self, task: str) -> World:
        """A copy of the world in which the free ones have done, or offer, what this task waits for."""
        world = self.world.copy()
        op = world.op(task)
        if isinstance(op, p.Send):
            receiver = world.program.channels[op.channel].receiver
            if receiver in self.free:
                world.todo[receiver] = (p.Recv((op.channel,)), Rest())
                if world.program.channels[op.channel].capacity:
                    world.apply(Move((receiver,), channel=op.channel))
        elif isinstance(op, p.Recv):
            for channel in op.channels:
                sender = world.program.channels[channel].sender
                if sender in self.free:
                    world.todo[sender] = (p.Send(channel), Rest())
                    for move in [move for move in world.moves_of(sender) if move.movers == (sender,)]:
                        world.apply(move)
        elif isinstance(op, p.Join):
            for member in world.program.groups[op.group]:
                if member in self.free:
                    world.todo[member] = (op, Rest())
        elif isinstance(op, p.Get):
            for helper in self._able(lambda o: isinstance(o, p.Put) and o.queue == op.queue)[:1]:
                self._do(world, helper, p.Put(op.queue))
        elif isinstance(op, p.Put):
            for helper in self._able(lambda o: isinstance(o, p.Get) and o.queue == op.queue)[:1]:
                self._do(world, helper, p.Get(op.queue))
        elif isinstance(op, p.Wait):
            for event in op.events:
                for helper in self._able(partial(eq, p.Set(event)))[:1]:
                    self._do(world, helper, p.Set(event))
        elif isinstance(op, p.Collect):
            for ref in op.refs:
                for server in world.program.servers:
                    self._finish(world, ref, server)
        elif isinstance(op, p.Serve):
            for helper in self._able(lambda o: isinstance(o, p.Call) and o.server == op.server)[:1]:
                self._do(world, helper, p.Call(op.server, "one more"))
        elif isinstance(op, p.Take):
            self._die(world, world.holders[op.resource])
        elif isinstance(op, p.Reap):
            self._die(world, op.tasks)
            world.status.update(dict.fromkeys(self.free.intersection(op.tasks), ENDED))
        return world

    def _die(self, world: World, wanted: Iterable[str]) -> None:
        """Free ones who may die take the processes of the wanted tasks with them."""
        processes = {world.program.tasks[task].process for task in wanted}
        for helper in self._able(lambda o: isinstance(o, p.Die)):
            if world.program.tasks[helper].process in processes and world.status[helper] == ALIVE:
                self._do(world, helper, p.Die())

    def _finish(self, world: World, ref: str, server: str) -> None:
        """Free callers make a call that was not made yet, and free lanes serve the line up to it."""
        lanes = self.free.intersection(world.program.servers[server])
        for caller in self._able(lambda o: isinstance(o, p.Call) and (o.server, o.ref) == (server, ref))[: len(lanes)]:
            self._do(world, caller, p.Call(server, ref))
        for lane in lanes:
            while any(call.ref == ref for call in world.lines[server]):
                first = world.lines[server][0]
                self._do(world, lane, p.Serve(server))
                self._do(world, lane, p.Reply(first.ref))
