"""Waits for a signal: nothing that the kernel tells leads to who should send it, and anybody on the machine may."""

from __future__ import annotations

from ray_rl_debug.analyze.clocks import may_end
from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View


def may_get_signal(view: View, one: Seen) -> str | None:
    """Who may send the signal for which a process waits, in words: whoever works beside it, or has a thread that its clock will wake.

    Where all of the machine wait, and no clock runs, nobody seen is left who could.
    """
    thread = one.followed or one.telling
    if thread is None or kernel_call(thread.kernel) != "pause":
        return None
    sender = next((other for other in view if other.process is not one.process and other.node is one.node and _goes_on(other)), None)
    return f"it waits for a signal, which {sender.name} (pid {sender.process.pid}) may send" if sender is not None else None


def _goes_on(one: Seen) -> bool:
    """A thread that pauses may as well wake where its clock, or the whole of its side in the kernel, was not read."""
    unread = bool(one.process.threads) and any(t.kernel is None and t.place.kind is Kind.SLEEP and t.place.path for t in one.threads)
    return one.is_at_work or unread or any(may_end(t) for t in one.process.threads)
