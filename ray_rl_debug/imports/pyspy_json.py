"""``py-spy dump --json``: one process, a list of threads."""

from __future__ import annotations

import msgspec

from ray_rl_debug.formats.dump import Dump, DumpThread
from ray_rl_debug.formats.pyspy_json import RawFrame, RawThread
from ray_rl_debug.formats.stack_table import short_file
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.snapshot import Local
from ray_rl_debug.privacy.kept_locals import keep_value, may_keep


class _Thread(RawThread):
    pid: int | None = None


_decoder = msgspec.json.Decoder(list[_Thread])


def read(data: bytes) -> list[Dump]:
    """The process, or several when their lists of threads were joined into one.

    Raises:
        UnreadableFileError: cut off, or JSON of another shape.
    """
    try:
        threads = _decoder.decode(data)
    except (msgspec.DecodeError, msgspec.ValidationError) as e:
        raise UnreadableFileError(f"not the JSON of py-spy dump, or cut off: {e}") from e
    dumps: dict[int | None, Dump] = {}
    for thread in threads:
        dump = dumps.setdefault(thread.pid, Dump(pid=thread.pid, source="py-spy", threads=[]))
        dump.threads.append(
            DumpThread(
                frames=[(f.name, f.filename, f.line) for f in thread.frames],
                tid=thread.os_thread_id,
                name=thread.thread_name,
                active=thread.active,
                owns_gil=thread.owns_gil,
                locals=_kept(thread.frames),
            )
        )
        dump.native = dump.native or any(".so" in f.filename for f in thread.frames)
    return list(dumps.values())


def _kept(frames: list[RawFrame]) -> tuple[Local, ...]:
    kept = []
    for position, frame in enumerate(frames):
        file, is_standard = short_file(frame.filename)
        if not frame.locals or not may_keep(file, is_standard):
            continue
        for local in frame.locals:
            value = keep_value(file, is_standard, frame.name, local.name, local.repr)
            if value is not None:
                kept.append(Local(frame=position, name=local.name, value=value))
    return tuple(kept)
