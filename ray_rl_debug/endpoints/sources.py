"""A file of answers, whatever wrote it: our recordings, and batches that trainers saved."""

from __future__ import annotations

from pathlib import Path

from ray_rl_debug.bounded.opening import open_regular
from ray_rl_debug.endpoints.batches import as_recording, is_batch, read_batch
from ray_rl_debug.endpoints.recordings import HINT, Recording, is_recording, read_recording
from ray_rl_debug.model.errors import UnreadableFileError


def read_answers(path: Path) -> Recording:
    """The answers in a file.

    Raises:
        UnreadableFileError: it cannot be opened, or holds none.
    """
    head = read_head(path)
    if is_recording(head):
        return read_recording(path)
    if is_batch(head):
        return as_recording(read_batch(path), path)
    raise UnreadableFileError(f"{path.name} is neither a recording of answers nor a batch that torch.save or DataProto.save_to_disk wrote", hint=HINT)


def read_head(path: Path) -> bytes:
    """The first bytes of a regular file.

    Raises:
        UnreadableFileError: it cannot be opened.
    """
    try:
        with open_regular(path, follow=True) as file:
            return file.read(8192)
    except OSError as e:
        raise UnreadableFileError(f"{path.name}: {e.strerror or e}") from e
