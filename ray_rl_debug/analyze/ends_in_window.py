"""What ended or began while a process was looked at: threads that it joins, and programs that it runs one after the other."""

from __future__ import annotations

from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import SHELLS, View, program_of
from ray_rl_debug.model.snapshot import EndedProcess


def script_goes_on(view: View, one: Seen) -> bool:
    """A shell that waits for one program sleeps; one that starts the next wakes up."""
    if one.kind is not Kind.CHILD:
        return False
    children = (view.seen[k].process for k in view.below.get((one.node.name, one.process.pid), ()))
    return any(t.run_slices for child in children if program_of(child) in SHELLS for t in child.threads)


def thread_ended(one: Seen) -> bool:
    """One that joins thread after thread stands in the same line at every look, each time for another thread: has one ended or begun meanwhile?"""
    thread = one.followed or one.telling
    joins = any(t is not None and t.place.kind is Kind.JOIN for t in (one.telling, thread))
    alive = {t.tid for t in one.process.threads}
    met = {t.tid for s in one.process.samples for t in s.threads if t.tid is not None}
    return joins and bool(alive) and (not met <= alive or any(t.tid in met and t.cpu_s is None for t in one.process.threads))


def came_to_end(one: Seen) -> bool:
    """Has the thread that counts ended since the last look, with all threads of its process read? Then it did what it had to do."""
    thread = one.followed or one.telling
    if thread is None or thread.tid is None or thread.kernel is not None or not one.process.threads:
        return False
    alive = {t.tid for t in one.process.threads}
    return thread.tid not in alive and one.process.thread_count == len(alive) + sum(one.process.idle_threads.values())


def ended_children(one: Seen) -> list[EndedProcess]:
    """Processes that ended during the window and were its children, or may have been: whose child one was may not have been read."""
    return [e for e in one.node.ended if e.ppid in (one.process.pid, None) and not e.was_dead]


def took_child(one: Seen) -> bool:
    """Did it take the exit status of a child during the window, whenever that one ended?"""
    return any(e.ppid == one.process.pid for e in one.node.ended)


def child_ended(view: View, one: Seen) -> bool:
    """One that runs program after program stands in the same wait at every look, each time for another child."""
    thread = one.followed or one.telling
    children = [view.seen[k] for k in view.below.get((one.node.name, one.process.pid), ())]
    if thread is not None and thread.place.kind in (Kind.CHILD, Kind.MP_QUEUE) and not children and ended_children(one):
        return True  # however it waits: for the end, at the pipes of what the child prints, or for the last that it sent
    if thread is None or thread.place.kind is not Kind.CHILD or thread.kernel is None:
        return False
    if kernel_call(thread.kernel) != "wait":
        return took_child(one)  # it reads what a child prints: the next one's
    wanted = thread.kernel.syscall_arg0
    if wanted in {s.process.pid for s in children}:
        children = [s for s in children if s.process.pid == wanted]
    return not children or any(s.age_s is not None and s.age_s < (one.process.window_s or 0.0) for s in children)
