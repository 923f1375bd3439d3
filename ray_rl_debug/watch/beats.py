"""What the readings of all nodes say of one job: who does what, who works, what moved on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from ray_rl_debug.analyze.identity import split_title
from ray_rl_debug.watch.signals import GpuSign, Known, NodeReading, Sign

ASKED_TIMES = 2
"""A worker tells its job a moment after its process has its title."""
WORKS = 0.08
"""Share of a core from which a process counts as working. An idle Ray worker uses 0.004, a polling one 0.02."""
RESTS = 0.03
"""and below which one that worked counts as resting again."""
SPINS = 0.8
"""Share of a core from which a process that touches no new memory only waits."""
WORK_SPAN_S = 1.5
"""In less time than this a process that has to wait for a core looks like one that rests."""
GPU_WORKS = 0.05
CARRIES_PER_S = 1 << 20
"""Bytes per second from which a process counts as moving bytes. What Ray and its worker say to each other is a hundredth of that."""
POWER_MOVES = 0.08
"""Change of a GPU's power draw, relative, that a kernel which only waits does not make."""


class Seen(msgspec.Struct):
    """One process as the companion knows it."""

    known: Known
    node: str
    title: str
    role: str
    """Class of an actor; ``driver``; ``child`` for anything else."""
    method: str | None = None
    """The Ray call in progress."""
    used_s: float = 0.0
    """Of processor time since it was last decided whether the process works,"""
    span_s: float = 0.0
    """and how long ago that was."""
    is_busy: bool = False
    """Uses the processor."""
    spins: bool | None = None
    """Does so without touching memory that is new to it; not known of one that does not have a core for itself."""
    is_doubted: bool = False
    """The last span said otherwise of `spins`; a second one in a row decides."""
    step: int | None = None
    collectives: int | None = None

    @property
    def works(self) -> bool:
        return self.is_busy and not self.spins


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of one job, reduced to what the decision needs."""

    at_s: float
    """Clock of the companion."""
    moved: tuple[tuple[str, str | None], ...] = ()
    """Roles in which a Ray call ended or began, with the call that was in progress until now."""
    rhythm: tuple[str, ...] = ()
    """Roles in which a process began or ceased to use the processor."""
    calls: tuple[tuple[str, str], ...] = ()
    """Roles and Ray calls in progress."""
    working: int = 0
    """Processes that use the processor and do not merely spin."""
    processes: int = 0
    appeared: int = 0
    vanished: int = 0
    step: int | None = None
    gpus_work: bool | None = None
    carries: tuple[str, ...] = ()
    """Roles in which a process, or a child of one, moves bytes; known only while something stands still, as is the next."""
    counted: tuple[str, ...] = ()
    """Roles whose collectives went on."""
    alone: tuple[tuple[str, str], ...] = ()
    """Roles of three ranks or more of which one works and all others rest, and who it is."""


class Census:
    """All processes of the cluster, kept up to date by the readings."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, int], Seen] = {}
        self.jobs: dict[tuple[str, int], str] = {}
        """Job of a process, as Ray tells."""
        self._worker_jobs: dict[tuple[str, int], str] = {}
        self._power: dict[tuple[str, int], tuple[float | None, int | None]] = {}
        self.gpus: dict[tuple[str, int], GpuSign] = {}
        self.gone: list[Seen] = []
        """Those that have ended, by the last readings."""
        self._asked: dict[tuple[str, int, int, str], int] = {}

    def beats(self, readings: Mapping[str, NodeReading], at_s: float, jobs: Iterable[str]) -> dict[str, Beat]:
        """The beat of each of these jobs, from what each node told since the last time."""
        found = {job: _Counts() for job in jobs}
        self.gone = []
        gpus_work: bool | None = None
        for node, reading in readings.items():
            for one in self._refresh(node, reading.known):
                self._count(found, one, "vanished")
                self.gone.append(one)
            born = {k.pid for k in reading.known or () if (node, k.pid) in self._new}
            for sign in reading.signs:
                seen = self.seen.get((node, sign.pid))
                if seen is not None:
                    self._take(seen, sign, reading.span_s, found.get(self.job_of(seen) or ""))
            for pid in born:
                self._count(found, self.seen[node, pid], "appeared")
            for gpu in reading.gpus or ():
                gpus_work = self._gpu(node, gpu) or bool(gpus_work)
        for seen in self.seen.values():
            counts = found.get(self.job_of(seen) or "")
            if counts is not None:
                counts.processes += 1
                counts.working += seen.works
                if seen.method is not None:
                    counts.calls.add((seen.role, seen.method))
                if seen.known.kind == "ray-worker":
                    counts.members.setdefault(seen.role, []).append(seen)
        return {job: c.beat(at_s, gpus_work) for job, c in found.items()}

    def job_of(self, seen: Seen) -> str | None:
        """The job of a process: by Ray's tables, by its environment, else by its parent's."""
        one: Seen | None = seen
        for _ in range(20):
            if one is None:
                return None
            job = self.jobs.get((one.node, one.known.pid)) or one.known.job_id
            if job is not None and job.strip("fF"):
                return job
            one = self.seen.get((one.node, one.known.ppid))
        return None

    def _owner(self, seen: Seen) -> Seen:
        """The worker or driver that started a process, directly or through others."""
        for _ in range(20):
            parent = self.seen.get((seen.node, seen.known.ppid)) if seen.known.kind == "child" else None
            if parent is None:
                break
            seen = parent
        return seen

    def unknown(self) -> frozenset[str]:
        """Nodes with a worker whose job nobody told, and that its raylet may still tell."""
        return frozenset(who[0] for who in self._nameless() if self._asked.get(who, 0) < ASKED_TIMES)

    def learn_jobs(self, told: Mapping[str, Mapping[int, str]], drivers: Mapping[tuple[str, int], str]) -> None:
        """What the raylets of some nodes said of their workers, and whose driver each is that Ray's table names."""
        kept = {(node, pid): job for (node, pid), job in self._worker_jobs.items() if node not in told and (node, pid) in self.seen}
        self._worker_jobs = {**kept, **{(node, pid): job for node, jobs in told.items() for pid, job in jobs.items()}}
        self.jobs = {**self._worker_jobs, **drivers}
        self._asked = {who: self._asked.get(who, 0) + (who[0] in told) for who in self._nameless()}

    def _nameless(self) -> list[tuple[str, int, int, str]]:
        return [
            (node, pid, s.known.born, s.role)
            for (node, pid), s in self.seen.items()
            if s.known.kind == "ray-worker" and s.role != "spare" and self.job_of(s) is None
        ]

    def forget_node(self, node: str) -> int:
        """A node is lost; how many processes it had."""
        gone = [key for key in self.seen if key[0] == node]
        for key in gone:
            del self.seen[key]
        return len(gone)

    def _refresh(self, node: str, known: tuple[Known, ...] | None) -> list[Seen]:
        self._new: set[tuple[str, int]] = set()
        if known is None:
            return []
        now = {(node, k.pid): k for k in known}
        gone = [s for key, s in self.seen.items() if key[0] == node and (key not in now or now[key].born != s.known.born)]
        for one in gone:
            del self.seen[node, one.known.pid]
        for key, one_known in now.items():
            if key not in self.seen:
                self._new.add(key)
                role, method = _role(one_known.kind, one_known.title)
                self.seen[key] = Seen(known=one_known, node=node, title=one_known.title, role=role, method=method)
        return gone

    def _count(self, found: Mapping[str, _Counts], seen: Seen, what: str) -> None:
        counts = found.get(self.job_of(seen) or "")
        if counts is not None and seen.known.kind == "ray-worker":
            setattr(counts, what, getattr(counts, what) + 1)

    def _take(self, seen: Seen, sign: Sign, span_s: float, counts: _Counts | None) -> None:
        if self._decide_work(seen, sign, span_s) and counts is not None:
            counts.rhythm.add(seen.role)
        if sign.title is not None and sign.title != seen.title:
            before = seen.method
            seen.title = sign.title
            seen.role, seen.method = _role(seen.known.kind, sign.title)
            if counts is not None:
                counts.moved.add((seen.role, before))
        elif sign.turned and counts is not None:
            counts.moved.add((seen.role, seen.method))
        if sign.step is not None and (seen.step is None or sign.step > seen.step):
            seen.step = sign.step
        if counts is not None and seen.step is not None:
            counts.step = max(counts.step or 0, seen.step)
        if counts is not None and (sign.moved_bytes_per_s or 0) >= CARRIES_PER_S:
            counts.carries.add(self._owner(seen).role)
        if sign.collectives is not None:
            if counts is not None and seen.collectives is not None and sign.collectives > seen.collectives:
                counts.counted.add(self._owner(seen).role)
            seen.collectives = sign.collectives

    def _decide_work(self, seen: Seen, sign: Sign, span_s: float) -> bool:
        """Has a process begun to work, or come to rest? One that goes over from work to spinning may just have got stuck."""
        if sign.cpu is not None:
            seen.used_s, seen.span_s = seen.used_s + sign.cpu * span_s, seen.span_s + span_s
        if seen.span_s < WORK_SPAN_S:
            return False
        was_busy, span = seen.is_busy, seen.spins
        cpu, seen.used_s, seen.span_s = seen.used_s / seen.span_s, 0.0, 0.0
        seen.is_busy = cpu > (RESTS if was_busy else WORKS)
        spins = (sign.faults_per_s or 0) < 1 and not sign.logged_bytes if cpu > SPINS else None
        # one burst of page faults says nothing: Ray's own threads make one every eight to ten seconds in any worker
        seen.is_doubted = None not in (span, spins) and span != spins and not seen.is_doubted
        seen.spins = span if seen.is_doubted else spins
        return was_busy != seen.is_busy or (span is True and seen.spins is False)

    def _gpu(self, node: str, gpu: GpuSign) -> bool:
        self.gpus[node, gpu.index] = gpu
        power, memory = self._power.get((node, gpu.index), (None, None))
        self._power[node, gpu.index] = (gpu.power_watts, gpu.memory_bytes)
        if not gpu.utilization or gpu.utilization < GPU_WORKS:
            return False
        if power is None or gpu.power_watts is None:
            return gpu.utilization < 0.99
        return abs(gpu.power_watts - power) > POWER_MOVES * max(power, 1.0) or memory != gpu.memory_bytes or gpu.utilization < 0.99


class _Counts:
    def __init__(self) -> None:
        self.moved: set[tuple[str, str | None]] = set()
        self.rhythm: set[str] = set()
        self.carries: set[str] = set()
        self.counted: set[str] = set()
        self.calls: set[tuple[str, str]] = set()
        self.members: dict[str, list[Seen]] = {}
        self.working = self.processes = self.appeared = self.vanished = 0
        self.step: int | None = None

    def beat(self, at_s: float, gpus_work: bool | None) -> Beat:
        return Beat(
            at_s=at_s,
            moved=tuple(sorted(self.moved, key=str)),
            rhythm=tuple(sorted(self.rhythm)),
            calls=tuple(sorted(self.calls)),
            working=self.working,
            processes=self.processes,
            appeared=self.appeared,
            vanished=self.vanished,
            step=self.step,
            gpus_work=gpus_work,
            carries=tuple(sorted(self.carries)),
            counted=tuple(sorted(self.counted)),
            alone=tuple(self._alone()),
        )

    def _alone(self) -> Iterator[tuple[str, str]]:
        for role, members in self.members.items():
            working = [m for m in members if m.works]
            if len(members) >= 3 and len(working) == 1 and role != "spare":
                yield role, f"(process {working[0].known.pid} on {working[0].node})"


def _role(kind: str, title: str) -> tuple[str, str | None]:
    if kind == "driver":
        return "driver", None
    if kind != "ray-worker":
        return "child", None
    class_name, method = split_title(title)
    return class_name or "spare", method
