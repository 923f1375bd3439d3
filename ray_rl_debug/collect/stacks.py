"""The stacks of many processes of one node, several times, with what they wait for in Ray.

One `StackSampler` lives for one capture. Frames and stacks are interned over the whole node.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ray_rl_debug.bounded.calls import within
from ray_rl_debug.bounded.programs import Supervisors, Traced
from ray_rl_debug.bounded.supervisor import release
from ray_rl_debug.collect import object_refs, prepared, pyspy, pystack, source_lines
from ray_rl_debug.collect.in_c import calls_in_c, run_at_one_place, uses_accelerator
from ray_rl_debug.collect.pyspy import Outcome
from ray_rl_debug.formats.pyspy_json import RawFrame, RawThread
from ray_rl_debug.formats.pystack import PystackThread
from ray_rl_debug.formats.stack_table import StackTable, short_file
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Frame, Gap, InC, Local, ObjectRefWait, Sample, ThreadSample
from ray_rl_debug.model.source_line import SourceLine
from ray_rl_debug.privacy.kept_locals import keep_value, may_keep

if TYPE_CHECKING:
    from ray_rl_debug.collect.options import CollectOptions

CONCURRENCY = 4
"""Dumps at a time. More gained nothing on 2 and 4 cores; py-spy spends its time on one core each."""
REFUSED_ENOUGH = 3
"""This many processes refused and none allowed: later samples do not ask again."""
TIMEOUTS_ENOUGH = 6
"""After this many deadlines on a node every further dump is ``--nonblocking``, so that a sick node cannot hold us for minutes."""

REFS_S = 2.0
"""For the ids that one process waits for, out of its memory; usually a millisecond."""

SAME_FAILURE_ENOUGH = 8
"""More processes than this with the same failure make one gap of the node."""

_VERSION = re.compile(r"(?:^|/|lib)python(3\.\d+)")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A process to look at, with its state letter and tracer as the caller saw them."""

    pid: int
    state: str
    tracer_pid: int = 0


class Stacks(msgspec.Struct, frozen=True, kw_only=True):
    """All stacks of one node. Mappings are by pid. `Gap.where` is ``""`` for the node and ``/PID`` for a process: prefix the node's name."""

    frames: tuple[Frame, ...]
    stacks: tuple[tuple[int, ...], ...]
    """Indexes into `frames`, innermost first."""
    samples: dict[int, tuple[Sample, ...]]
    object_refs: dict[int, tuple[ObjectRefWait, ...]]
    object_refs_before: dict[int, tuple[ObjectRefWait, ...]]
    """Of an earlier sample, where they were others."""
    in_c: dict[int, tuple[InC, ...]]
    python: dict[int, str]
    """Version such as ``3.11``, of processes known to be Python."""
    gaps: tuple[Gap, ...]


def _are_others(earlier: Sequence[ObjectRefWait], now: Sequence[ObjectRefWait]) -> bool:
    """Do threads wait for nothing of what they waited for before?"""
    ids = [{object_id for wait in waits for object_id in wait.object_ids} for waits in (earlier, now)]
    return bool(ids[0]) and ids[0].isdisjoint(ids[1])


_RESTS = "main_loop"
"""Of ``ray/_private/worker.py``: where workers wait for work."""


class StackSampler:
    """Takes samples of the processes of one node with py-spy (and pystack where asked), and keeps account of what it could not see."""

    def __init__(self, options: CollectOptions, pyspy: str | None, *, proc: Path = Path("/proc"), concurrency: int = CONCURRENCY) -> None:
        self._options = options
        self._pyspy = pyspy
        self._proc = proc
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="stacks")
        self._supervisors = Supervisors()
        self._table = StackTable()
        self._samples: dict[int, list[Sample]] = {}
        self._refs: dict[int, tuple[ObjectRefWait, ...]] = {}
        self._refs_before: dict[int, tuple[ObjectRefWait, ...]] = {}
        self._in_c: dict[int, tuple[InC, ...]] = {}
        self._python: dict[int, str] = {}
        self._troubles: dict[int, Outcome] = {}
        self._not_python: set[int] = set()
        self._timed_out: set[int] = set()
        self._continued: set[int] = set()
        self._held: dict[int, Traced] = {}
        self._pystack = pystack.find_pystack() if options.pystack else None
        self._pystack_failed: dict[int, str] = {}
        self._seen: set[int] = set()

    def sample(self, targets: Sequence[Target], at_s: float) -> None:
        """One sample of each target; returns when all are taken or have failed. ``at_s`` is the time now on the node's clock."""
        began = time.monotonic()
        first = not self._seen
        self._seen.update(target.pid for target in targets)
        wanted = [target for target in targets if self._is_wanted(target)]
        if self._is_refused_everywhere():
            return
        for target, (ended, outcome, waits) in zip(wanted, self._pool.map(self._timed_look, wanted), strict=True):
            self._record(target.pid, at_s + ended - began, outcome, waits)
        if first and self._pystack is not None:
            self._sample_with_pystack([target.pid for target in wanted if target.pid not in self._not_python], at_s + time.monotonic() - began)

    def look_into_c(self) -> None:
        """Read the frames of C once, of processes that use an accelerator and ran at one place in all samples (see `in_c`)."""
        if self._pyspy is None or self._timed_out or self._options.native:
            return
        places = {pid: at for pid, samples in self._samples.items() if (at := run_at_one_place(samples)) and uses_accelerator(pid, self._proc)}
        dump = partial(pyspy.dump, self._pyspy, native=True, timeout_s=self._options.timeout_s, proc=self._proc, run=self._supervisors.run)
        for (pid, at), outcome in zip(places.items(), self._pool.map(dump, places), strict=True):
            self._note_stops(pid, outcome)
            if outcome.kind != "ok" or not outcome.native:
                continue
            self._number_outside(pid, outcome)
            self._in_c[pid] = calls_in_c(outcome.threads, at, self._table)

    def rests(self, pid: int) -> bool:
        """Did its main thread wait for Ray to give it work when it was looked at last? True where it could not be looked at."""
        samples = self._samples.get(pid)
        main = next((t for t in samples[-1].threads if t.tid == pid), None) if samples else None
        return main is None or (self._table.end(main.stack) or "").rpartition(".")[2] == _RESTS

    def finish(self) -> Stacks:
        """Everything seen. Ends the sampler: no target is left stopped by it."""
        self._pool.shutdown(wait=True)
        calls = self._calls()
        self._supervisors.close()
        for pid, traced in self._held.items():
            if release(pid, traced.ticks, str(self._proc), patience_s=0):
                self._continued.add(pid)
        return Stacks(
            frames=self._table.frames(calls),
            stacks=self._table.stacks(),
            samples={pid: tuple(samples) for pid, samples in self._samples.items()},
            object_refs={pid: waits for pid, waits in self._refs.items() if waits},
            object_refs_before=dict(self._refs_before),
            in_c={pid: found for pid, found in self._in_c.items() if found},
            python=dict(self._python),
            gaps=tuple(self._gaps()),
        )

    def _calls(self) -> dict[int, SourceLine]:
        telling, places = self._table.telling(), self._table.places()
        runs = {n: pid for pid, samples in self._samples.items() for s in samples for t in s.threads if (n := telling[t.stack]) is not None}
        wanted = {number: (runs[number], *places[number]) for number in sorted(runs)}
        told = source_lines.read_calls(wanted, proc=self._proc, run=self._supervisors.run)
        around = self._locks_around({n for n, line in told.items() if line.wants is not None})
        return told | {n: msgspec.structs.replace(told.get(n, line), under=line.under) for n, line in around.items()}

    def _locks_around(self, takers: set[int]) -> dict[int, SourceLine]:
        """Of processes in which a thread takes a lock that its source names: which locks the lines of all of their threads hold."""
        stacks, places = self._table.stacks(), self._table.places()
        lines: dict[int, int] = {}
        for pid, samples in self._samples.items() if takers else ():
            mine = {number for t in samples[-1].threads for number in stacks[t.stack]}
            lines |= dict.fromkeys(mine, pid) if mine & takers else {}
        wanted = {number: (pid, *places[number]) for number, pid in sorted(lines.items()) if not short_file(places[number][0])[1]}
        return source_lines.read_calls(wanted, proc=self._proc, run=self._supervisors.run, only_under=True)

    def _is_wanted(self, target: Target) -> bool:
        return target.state not in ("Z", "X") and target.pid not in self._not_python

    def _is_refused_everywhere(self) -> bool:
        refused = sum(outcome.kind in ("refused", "no-py-spy") for outcome in self._troubles.values())
        return refused >= REFUSED_ENOUGH and not self._samples

    def _timed_look(self, target: Target) -> tuple[float, Outcome, tuple[ObjectRefWait, ...]]:
        """Also when it was over: on a crowded machine that is long after it was planned, and later for some than for others."""
        outcome, waits = self._look(target)
        return time.monotonic(), outcome, waits

    def _look(self, target: Target) -> tuple[Outcome, tuple[ObjectRefWait, ...]]:
        careful = target.tracer_pid != 0 or target.pid in self._timed_out or len(self._timed_out) >= TIMEOUTS_ENOUGH
        options = self._options
        if self._pyspy is None:
            outcome = Outcome(kind="no-py-spy")
        else:
            outcome = pyspy.dump(
                self._pyspy,
                target.pid,
                nonblocking=careful,
                native=options.native,
                timeout_s=options.timeout_s,
                proc=self._proc,
                run=self._supervisors.run,
            )
        if outcome.timed_out:
            self._timed_out.add(target.pid)
        if outcome.kind in ("refused", "no-py-spy"):
            return _from_inside(target.pid, self._proc) or outcome, ()
        if outcome.kind != "ok":
            return outcome, ()
        self._number_outside(target.pid, outcome)
        # At once, while the objects are most likely still there.
        try:
            return outcome, within(REFS_S, lambda: object_refs.find_waits(target.pid, outcome.threads, self._proc))
        except TimeoutError:  # a page of its memory is on a hung file system
            return outcome, ()

    def _record(self, pid: int, at_s: float, outcome: Outcome, waits: tuple[ObjectRefWait, ...]) -> None:
        self._note_stops(pid, outcome)
        if outcome.kind == "not-python":
            self._not_python.add(pid)
        elif outcome.kind != "ok":
            self._troubles[pid] = outcome
        else:
            self._troubles.pop(pid, None)
            source = outcome.source or ("py-spy --nonblocking" if outcome.nonblocking else "py-spy")
            threads = tuple([self._thread(pid, thread) for thread in outcome.threads])
            self._samples.setdefault(pid, []).append(Sample(at_s=round(at_s, 3), threads=threads, source=source, native=outcome.native))
            if waits and _are_others(earlier := self._refs.get(pid, ()), waits):
                self._refs_before[pid] = earlier
            self._refs[pid] = waits or self._refs.get(pid, ())
            if pid not in self._python and (version := _python_version(pid, outcome.threads, self._proc)):
                self._python[pid] = version

    def _note_stops(self, pid: int, outcome: Outcome) -> None:
        """Which stops of ours were, or are to be, taken back."""
        if outcome.continued:
            self._continued.add(pid)
        if outcome.held is not None:
            self._held[pid] = outcome.held

    def _number_outside(self, pid: int, outcome: Outcome) -> None:
        """Give its threads their ids as seen from outside its container."""
        if ids := pyspy.thread_ids_by_inner_id(pid, self._proc):
            for thread in outcome.threads:
                thread.os_thread_id = ids.get(thread.os_thread_id or 0, thread.os_thread_id)

    def _thread(self, pid: int, raw: RawThread) -> ThreadSample:
        return ThreadSample(
            stack=self._table.add([(f.name, f.filename, f.line) for f in raw.frames]),
            tid=raw.os_thread_id,
            # py-spy takes the names from the threading module, which a program without threads may never import.
            name=raw.thread_name or ("MainThread" if raw.os_thread_id == pid else None),
            active=raw.active,
            owns_gil=raw.owns_gil,
            locals=_kept(raw.frames),
        )

    def _sample_with_pystack(self, pids: Sequence[int], at_s: float) -> None:
        binary, timeout_s = self._pystack, self._options.timeout_s
        assert binary is not None
        look = partial(pystack.dump, binary, timeout_s=timeout_s, run=self._supervisors.run)
        for pid, answer in zip(pids, self._pool.map(look, pids), strict=True):
            if isinstance(answer, str):
                self._pystack_failed[pid] = answer
                continue
            threads = tuple([self._pystack_thread(pid, thread) for thread in answer])
            self._samples.setdefault(pid, []).append(Sample(at_s=round(at_s, 3), threads=threads, source="pystack"))

    def _pystack_thread(self, pid: int, raw: PystackThread) -> ThreadSample:
        stack = self._table.add(raw.frames)
        name = "MainThread" if raw.tid == pid else raw.name
        return ThreadSample(stack=stack, tid=raw.tid, name=name, owns_gil=raw.owns_gil, waits_for_gil=raw.waits_for_gil)

    def _gaps(self) -> Iterable[Gap]:
        if self._pyspy is None and (unseen := self._seen - self._samples.keys()):
            yield Gap(id=gaps.PYSPY_MISSING, where="", what=f"stacks of {_count(unseen)}", reason="py-spy was not found", remedy="pip install py-spy")
        refused = {pid: o for pid, o in self._troubles.items() if o.kind == "refused" and pid not in self._samples}
        gone = {pid: o for pid, o in self._troubles.items() if o.kind == "gone"}
        for id, found in ((gaps.STACKS_REFUSED, refused), (gaps.PROCESS_GONE, gone)):
            if found:
                yield Gap(id=id, where="", what=f"stacks of {_count(found)}", reason=next(iter(found.values())).reason)
        yield from self._failures()
        for pid in sorted(self._continued):
            reason = "py-spy was killed and left the process with a stop signal; SIGCONT was sent to undo it"
            yield Gap(id=gaps.STACKS_FAILED, where=f"/{pid}", what="a blocking dump", reason=reason)
        if self._options.pystack and self._pystack is None:
            remedy = "pip install pystack"
            yield Gap(id=gaps.PYSTACK_FAILED, where="", what="stacks by pystack", reason="pystack was not found", remedy=remedy)
        elif self._pystack_failed:
            what = f"stacks by pystack of {_count(self._pystack_failed)}"
            yield Gap(id=gaps.PYSTACK_FAILED, where="", what=what, reason=next(iter(self._pystack_failed.values())))

    def _failures(self) -> Iterable[Gap]:
        by_reason: dict[str, list[int]] = {}
        for pid, outcome in sorted(self._troubles.items()):
            if outcome.kind in ("failed", "timeout"):
                by_reason.setdefault(outcome.reason, []).append(pid)
        for reason, pids in by_reason.items():
            if len(pids) > SAME_FAILURE_ENOUGH:
                yield Gap(id=gaps.STACKS_FAILED, where="", what=f"stacks of {_count(pids)}", reason=reason)
                continue
            for pid in pids:
                what = "the latest of its stacks" if pid in self._samples else "its stacks"
                yield Gap(id=gaps.STACKS_FAILED, where=f"/{pid}", what=what, reason=reason)


def _from_inside(pid: int, proc: Path) -> Outcome | None:
    """The stacks that a prepared process writes itself."""
    threads = prepared.read_stacks(pid, proc=proc)
    if threads is None:
        return None
    raw = [
        RawThread(frames=[RawFrame(*frame) for frame in frames], thread_name=name, os_thread_id=pid if i == 0 else None, owns_gil=owns)
        for i, (name, owns, frames) in enumerate(threads)
    ]
    return Outcome(kind="ok", threads=tuple(raw), source="faulthandler")


def _count(pids: Iterable[int]) -> str:
    ordered = sorted(pids)
    if len(ordered) == 1:
        return f"process {ordered[0]}"
    return f"{len(ordered)} processes"


def _kept(frames: Sequence[RawFrame]) -> tuple[Local, ...]:
    kept = []
    for position, frame in enumerate(frames):
        if not frame.locals:
            continue
        file, is_standard = short_file(frame.filename)
        if not may_keep(file, is_standard):
            continue
        for local in frame.locals:
            value = keep_value(file, is_standard, frame.name, local.name, local.repr)
            if value is not None:
                kept.append(Local(frame=position, name=local.name, value=value))
    return tuple(kept)


def _python_version(pid: int, threads: Iterable[RawThread], proc: Path) -> str | None:
    try:
        exe = os.readlink(proc / str(pid) / "exe")
    except OSError:
        exe = ""
    if found := _VERSION.search(os.path.basename(exe)):
        return found[1]
    for thread in threads:
        for frame in thread.frames:
            if found := re.search(r"/lib/python(3\.\d+)", frame.filename):
                return found[1]
    return None
