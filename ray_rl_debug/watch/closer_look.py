"""What is done when a run stands still: the closer look with its files, and telling people."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ray_rl_debug.bounded.calls import within
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.errors import OutputError, RayRlDebugError
from ray_rl_debug.model.foreign_text import as_text
from ray_rl_debug.model.report import Cause, Certainty, Report, State
from ray_rl_debug.model.snapshot import Snapshot
from ray_rl_debug.render.html.strips import Strip
from ray_rl_debug.render.phone import best_finding, headline, phone_text
from ray_rl_debug.saving.files import save, save_snapshot
from ray_rl_debug.watch.history import Event, History
from ray_rl_debug.watch.page_strips import strips_of

KEPT_LOOKS = 20
KEPT_BYTES = 500 << 20
MAX_VARIABLE_CHARS = 16_000
"""Linux passes on 128 KiB in one variable, at most four bytes for each character."""
SECRET_VARIABLES = ("RAYRL_DEBUG_SLACK", "RAYRL_DEBUG_WEBHOOK")
"""Ours alone; a hook has no need of them."""
NEVER_USUAL = frozenset({Cause.ENGINE_DIED, Cause.RANK_DIED, Cause.PRODUCER_DIED, Cause.PROCESS_STOPPED})
"""Told by what was seen of a process, not by how long somebody has waited."""
SPARE_S = 5.0
TRACE_S = 60.0
"""For a folder of our own, and for the timeline of a large run."""
_NOTHING = "rayrl-debug: nothing could be written"


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """One closer look."""

    snapshot: Snapshot
    report: Report
    folder: Path | None
    """Where its files are; None when nothing could be written anywhere."""
    took_s: float
    trouble: str | None = None
    """What could not be written, and why."""

    @property
    def is_hang(self) -> bool:
        return self.report.verdict.state is State.HANG

    @property
    def is_proven(self) -> bool:
        return self.is_hang and self.report.verdict.certainty is Certainty.PROVEN

    @property
    def is_never_usual(self) -> bool:
        """Does the verdict rest on a death or a stop? Such a thing is not usual, however long healthy calls take."""
        best = next((f for f in self.report.findings if f.root), None)
        is_sure = self.report.verdict.certainty is not Certainty.POSSIBLE
        return self.is_hang and is_sure and best is not None and best.cause in NEVER_USUAL

    @property
    def key(self) -> str:
        """Equal for the same verdict on the same culprits."""
        return verdict_key(self.report)


def verdict_key(report: Report) -> str:
    """State, rule and culprits of the best finding; equal keys are the same trouble."""
    best = next((f for f in report.findings if f.root), None)
    if report.verdict.state is not State.HANG or best is None:
        return str(report.verdict.state.value)
    who = sorted(f"{w.node}/{w.pid}" if w.pid is not None else w.label for w in best.who)
    return "|".join((report.verdict.state.value, best.id, *who[:20]))


def take_look(
    gather: Callable[[], Snapshot],
    history: History,
    *,
    now_s: float,
    clock: Callable[[], float] = time.monotonic,
    judge: Callable[[Snapshot], Report] = diagnose,
) -> Look:
    """Snapshot and report, for `Keeping`: nothing is written yet, except facts whose analysis fails. Raises as `capture.cluster.take_snapshot`."""
    began = clock()
    snapshot = gather()
    try:
        report = judge(snapshot)
    except Exception:
        keep_facts(history, snapshot, now_s)
        raise
    return Look(snapshot=snapshot, report=report, folder=None, took_s=clock() - began)


class Keeping:
    """A look whose files are written while people are told."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self._done = threading.Event()

    def write(self, history: History, now_s: float) -> Look:
        """Write the files; a full disk is told in the result."""
        look = self.look
        try:
            folder, trouble = keep_facts(history, look.snapshot, now_s)
            said = _save_report(folder, look.report, look.snapshot, history.events) if folder is not None else None
            self.look = msgspec.structs.replace(look, folder=folder, trouble=trouble or said)
        finally:
            self._done.set()
        return self.look

    def wait(self, seconds: float) -> Look:
        """The look with its folder, or without one when its files are not there in time."""
        self._done.wait(seconds)
        return self.look


def keep_facts(history: History, snapshot: Snapshot, now_s: float) -> tuple[Path | None, str | None]:
    """Write the snapshot: where it belongs, else after older looks have made room, else in the folder for temporary files."""
    first = None
    folder = history.new_folder(now_s)
    for attempt in ("there", "after pruning"):
        try:
            if history.is_hung():
                raise OutputError(f"cannot write {folder}: its file system hangs")
            save_snapshot(folder, snapshot)
            return folder, None
        except OutputError as e:
            first = first or str(e)
            history.remove(folder)
            if attempt == "there" and not history.prune(keep=3, max_bytes=KEPT_BYTES // 10, spare=spared(history)):
                break
    try:
        spare = Path(within(SPARE_S, lambda: tempfile.mkdtemp(prefix="rayrl-debug-watch-")))
        save_snapshot(spare, snapshot)
        return spare, f"{first}; the files are in {spare}"
    except (OSError, OutputError):
        return None, f"{first}; {_NOTHING}"


def _save_report(folder: Path, report: Report, snapshot: Snapshot, events: Sequence[Event]) -> str | None:
    try:
        save(folder, report, snapshot, is_saved=True, history=strips_of(events, until_s=snapshot.taken_time_s))
    except OutputError as e:
        return str(e)
    except Exception as e:  # noqa: BLE001 a page that cannot be drawn must not cost the alarm
        return f"{type(e).__name__}: {e}"
    return None


def keep_trace(look: Look, history: History, progress: Callable[[str], None]) -> None:
    """The timeline of this look and the ones before, beside the report; its failure costs nothing else."""
    if look.folder is None:
        return
    from ray_rl_debug.timeline.live import save_beside

    folder, snapshot = look.folder, look.snapshot

    def strips() -> Sequence[Strip]:
        return strips_of(history.events, until_s=snapshot.taken_time_s)

    try:
        within(TRACE_S, lambda: save_beside(folder, snapshot, look.report, history=folder.parent, strips=strips, progress=progress))
    except TimeoutError:
        pass  # its file system hangs; the watch goes on


def spared(history: History) -> frozenset[str]:
    """Looks that gave a verdict."""
    return frozenset(e.folder for e in history.events if e.kind == "verdict" and e.folder)


def hook_environment(look: Look, *, job_id: str, age_s: float, base: dict[str, str] | None = None) -> dict[str, str]:
    """What ``--on-hang`` commands are told, beside our own environment."""
    best = best_finding(look.report)
    folder = look.folder
    told = {
        "RAYRL_DEBUG_STATE": look.report.verdict.state.value,
        "RAYRL_DEBUG_CERTAINTY": look.report.verdict.certainty.value,
        "RAYRL_DEBUG_HEADLINE": headline(look.report),
        "RAYRL_DEBUG_SHORT": phone_text(look.report, job_id=job_id, age_s=age_s),
        "RAYRL_DEBUG_SUMMARY": look.report.verdict.summary,
        "RAYRL_DEBUG_RULE": best.id if best else "",
        "RAYRL_DEBUG_CAUSE": best.cause.value if best else "",
        "RAYRL_DEBUG_WHO": ", ".join(w.label for w in best.who) if best else "",
        "RAYRL_DEBUG_FOLDER": str(folder or ""),
        "RAYRL_DEBUG_REPORT": str(folder / "report.json") if folder else "",
        "RAYRL_DEBUG_REPORT_TEXT": str(folder / "report.txt") if folder else "",
        "RAYRL_DEBUG_REPORT_HTML": str(folder / "report.html") if folder else "",
        "RAYRL_DEBUG_JOB": job_id,
        "RAYRL_DEBUG_STALLED_S": f"{age_s:.0f}",
    }
    given = dict(os.environ) if base is None else base
    kept = {name: value for name, value in given.items() if name not in SECRET_VARIABLES}
    return {**kept, **{name: _as_variable(value) for name, value in told.items()}}


def _as_variable(text: str) -> str:
    """What the kernel takes as a variable's value: no NUL, no more than it passes on, nothing that the system cannot encode."""
    kept = text.replace("\0", "\\x00")[:MAX_VARIABLE_CHARS]
    try:
        os.fsencode(kept)
    except UnicodeEncodeError:
        return as_text(kept)
    return kept


def describe_trouble(error: Exception) -> str:
    """One line for a look that could not be taken."""
    return str(error) if isinstance(error, RayRlDebugError) else f"{type(error).__name__}: {error}"
