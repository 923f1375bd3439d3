"""Random programs: sound ones, made of small stories that all end, and then spoiled here and there; and wild ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from oracle import program as p

_SPOILED = (0, 0, 1, 1, 2, 3)
"""How many errors are put into a program."""


def random_program(rng: random.Random, size: int | None = None) -> p.Program:
    """One program of about `size` stories; one in six is wild."""
    builder = _Builder(rng, size or rng.randint(3, 9))
    if rng.random() < 1 / 6:
        return builder.wild()
    builder.stories_told()
    for _ in range(rng.choice(_SPOILED)):
        builder.spoil()
    return builder.program()


class _Builder:
    def __init__(self, rng: random.Random, size: int) -> None:
        self.rng = rng
        self.size = size
        self.number = 0
        self.code: dict[str, list[p.Op]] = {}
        self.tasks: dict[str, p.Task] = {}
        self.channels: dict[str, p.Channel] = {}
        self.groups: dict[str, tuple[str, ...]] = {}
        self.resources = {"lock1": p.Resource(), "lock2": p.Resource(), "flock": p.Resource(freed_at_death=True), "gpus": p.Resource(units=2)}
        self.queues: dict[str, p.Queue] = {"semaphore": p.Queue(None, 1)}
        self.servers: dict[str, tuple[str, ...]] = {}
        self.threads: list[str] = []
        for process in range(rng.randint(2, 4)):
            for thread in range(rng.choice((1, 1, 2))):
                self.threads.append(self._task(f"p{process}", f"t{process}{thread}"))
        self.coroutines = [self._task("aio", f"c{i}", loop="loop1") for i in range(rng.choice((0, 0, 2, 3)))]
        for server in range(rng.choice((0, 1, 1, 2))):
            is_async = rng.random() < 0.3
            lanes = [
                self._task(
                    f"actor{server}", f"lane{server}{i}", loop=f"loop of actor{server}" if is_async else None, code=[p.Serve(f"actor{server}")]
                )
                for i in range(rng.randint(1, 2))
            ]
            self.servers[f"actor{server}"] = tuple(lanes)
        self.groups["world"] = tuple(rng.sample(self.threads, rng.randint(2, len(self.threads))))
        self.groups["tp"] = self.groups["world"][:2]
        if rng.random() < 0.3:
            self._task("p0", "heart", code=[p.Beat()])

    def _task(self, process: str, name: str, loop: str | None = None, born: bool = True, code: list[p.Op] | None = None) -> str:
        self.tasks[name] = p.Task(process, (), loop, born)
        self.code[name] = code or []
        return name

    def _new(self, kind: str) -> str:
        self.number += 1
        return f"{kind}{self.number}"

    def program(self) -> p.Program:
        tasks = {name: replace(task, code=tuple(self.code[name])) for name, task in self.tasks.items()}
        return p.Program(tasks, self.channels, self.groups, self.resources, self.queues, self.servers)

    # -- sound stories: told one after another, each in the codes of all who take part, so that they end in this order if in no other

    def stories_told(self) -> None:
        stories: list[Callable[[], None]] = [
            self._message,
            self._message,
            self._collective,
            self._collective,
            self._critical,
            self._critical,
            self._queue,
            self._semaphore,
            self._event,
            self._pause,
            self._child,
        ]
        if self.servers:
            stories += [self._calls] * 4
        if self.coroutines:
            stories += [self._blocking_stretch] * 2
        open_sections: list[tuple[str, str]] = []
        for _ in range(self.size):
            self.rng.choice(stories)()
            if open_sections and self.rng.random() < 0.5:
                task, resource = open_sections.pop()
                self.code[task].append(p.Give(resource))
            elif self.rng.random() < 0.2:  # what comes next happens while a lock is held
                task, resource = self._anybody(), self.rng.choice(list(self.resources))
                if all(resource != other for _, other in open_sections):
                    open_sections.append((task, resource))
                    self.code[task].append(p.Take(resource))
        for task, resource in open_sections:
            self.code[task].append(p.Give(resource))

    def _anybody(self) -> str:
        return self.rng.choice(self.threads + self.coroutines)

    def _two(self) -> tuple[str, str]:
        first, second = self.rng.sample(self.threads + self.coroutines, 2)
        return first, second

    def _timed(self) -> bool:
        return self.rng.random() < 0.12

    def _message(self) -> None:
        sender, receiver = self.rng.sample(self.threads, 2)
        names = [self._new("channel")]
        self.channels[names[0]] = p.Channel(sender, receiver, self.rng.choice((0, 0, 1, 2)))
        if self.rng.random() < 0.25:
            names.append(self._new("channel"))
            self.channels[names[1]] = p.Channel(self.rng.choice([t for t in self.threads if t != receiver]), receiver, 1)
        self.code[sender].append(p.Send(names[0], timeout=self._timed()))
        self.code[receiver].append(p.Recv(tuple(names), timeout=self._timed()))

    def _collective(self) -> None:
        group, name = self.rng.choice(list(self.groups)), self.rng.choice(("all_reduce", "barrier", "new_group a"))
        for member in self.groups[group]:
            self.code[member].append(p.Join(group, name))

    def _critical(self) -> None:
        task = self._anybody()
        taken = self.rng.sample(list(self.resources), self.rng.randint(1, 2))
        inner = [self.rng.choice((p.Work(), p.Sleep()))] if self.rng.random() < 0.5 else []
        self.code[task] += [*(p.Take(r, timeout=self._timed()) for r in taken), *inner, *map(p.Give, reversed(taken))]

    def _queue(self) -> None:
        producer, consumer = self._two()
        name = self._new("queue")
        self.queues[name] = p.Queue(self.rng.choice((None, 1, 2)))
        for _ in range(self.rng.randint(1, 3)):
            self.code[producer].append(p.Put(name, timeout=self._timed()))
            self.code[consumer].append(p.Get(name, timeout=self._timed()))

    def _semaphore(self) -> None:
        self.code[self._anybody()] += [p.Get("semaphore"), self.rng.choice((p.Work(), p.Sleep())), p.Put("semaphore")]

    def _event(self) -> None:
        setter, waiter = self._two()
        names = [self._new("event")]
        if self.rng.random() < 0.3:
            names.append(self._new("event"))
            if self.rng.random() < 0.5:
                self.code[self._anybody()].append(p.Set(names[1]))
        self.code[setter].append(p.Set(names[0]))
        self.code[waiter].append(p.Wait(tuple(names), timeout=self._timed()))

    def _pause(self) -> None:
        self.code[self._anybody()] += [self.rng.choice((p.Work(), p.Sleep()))]

    def _child(self) -> None:
        parent = self._anybody()
        process = self._new("child")
        children = [self._task(process, f"{process}.{i}", born=False) for i in range(self.rng.randint(1, 2))]
        lock = self.rng.choice(("lock1", "flock"))
        for child in children:
            self.code[child] += self.rng.choice(([p.Work()], [p.Sleep()], [p.Take(lock), p.Give(lock)], []))
        self.code[parent] += [p.Spawn(tuple(children)), p.Reap(tuple(children), timeout=self._timed())]

    def _calls(self) -> None:
        caller, getter = self._anybody(), self._anybody()
        refs = []
        for _ in range(self.rng.randint(1, 3)):
            refs.append(self._new("ref"))
            self.code[caller].append(p.Call(self.rng.choice(list(self.servers)), refs[-1], self._method(2)))
        if self.rng.random() < 0.8:
            getter = caller
        self.code[getter].append(p.Collect(tuple(refs), any=self.rng.random() < 0.3, timeout=self._timed()))

    def _method(self, depth: int) -> tuple[p.Op, ...]:
        """What a call does; in it, sometimes, another call."""
        kind = self.rng.random()
        lock = self.rng.choice(list(self.resources))
        if kind < 0.3:
            return (p.Work(),)
        if kind < 0.5:
            return (p.Sleep(),)
        if kind < 0.7:
            return (p.Take(lock), p.Work(), p.Give(lock))
        if kind < 0.8:
            return (p.Get("semaphore"), p.Put("semaphore"))
        if kind < 0.9 and depth:
            ref = self._new("ref")
            return (p.Call(self.rng.choice(list(self.servers)), ref, self._method(depth - 1)), p.Collect((ref,)))
        return ()

    def _blocking_stretch(self) -> None:
        """A coroutine does something that blocks its whole loop."""
        resource = self.rng.choice(list(self.resources))
        inner: tuple[p.Op, ...] = self.rng.choice(((p.Sleep(),), (p.Take(resource), p.Give(resource)), (p.Get("semaphore"), p.Put("semaphore"))))
        self.code[self.rng.choice(self.coroutines)] += [p.Hold(), *inner, p.Free()]

    # -- errors

    def spoil(self) -> None:
        places = [(task, i) for task, code in self.code.items() for i in range(len(code)) if not isinstance(code[i], p.Serve)]
        if not places:
            return
        task, i = self.rng.choice(places)
        code = self.code[task]
        op = code[i]
        kind = self.rng.choice(("drop", "drop", "swap", "swap", "move", "double", "die", "end", "other name", "other lock"))
        if kind == "drop":
            del code[i]
        elif kind == "swap" and i:
            code[i - 1], code[i] = code[i], code[i - 1]
        elif kind == "move":
            del code[i]
            code.insert(self.rng.randint(0, len(code)), op)
        elif kind == "double":
            code.insert(i, op)
        elif kind == "die":
            code.insert(i, p.Die())
        elif kind == "end":
            del code[i:]
        elif kind == "other name" and isinstance(op, p.Join):
            code[i] = p.Join(op.group, "broadcast")
        elif kind == "other lock" and isinstance(op, p.Take):
            code[i] = p.Take(self.rng.choice(list(self.resources)))
        elif kind == "other lock" and isinstance(op, p.Give):
            code[i] = p.Give(self.rng.choice(list(self.resources)))

    def wild(self) -> p.Program:
        """All the operations of sound stories, each task's in a random order."""
        self.stories_told()
        for task, code in self.code.items():
            if task not in {lane for lanes in self.servers.values() for lane in lanes} and self.rng.random() < 0.6:
                self.rng.shuffle(code)
        return self.program()
