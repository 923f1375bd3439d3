"""Words of who waits for whom, and of locks that are taken in two orders."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.formats.pasted.mutual import of_line
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Certainty, Finding

GET = "get (ray/_private/worker.py:2700)\nwrapper (ray/_private/client_mode_hook.py:103)\n"
BASE = "main_loop (ray/_private/worker.py:1012)\n"
TWO_ACTORS = f"Coordinator:\n```\n{GET}ask (pair.py:8)\n{BASE}```\nServer:\n```\n{GET}answer (pair.py:18)\n{BASE}```\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The main thread (holding the GIL) waits for the mutex, the heartbeat (holding the mutex) is waiting for the GIL.", "locks"),
        ("main has `self._io` and waits for `self._meta`; the writer has `_meta` and waits for `_io`.", "locks"),
        ("This is a lock-order inversion between the two.", "locks"),
        ("Both jobs take these locks in the opposite order.", "locks"),
        ("It looks like a deadlock, they are waiting for each other.", "mutual"),
        ("Each of them waits for `echo` of the other one.", "mutual"),
        ("It could be a lock inversion.", None),
        ("If they wait for each other, nothing moves.", None),
        ("The driver has the queue and waits for the actor.", None),
        ("We never wait for each other.", None),
    ],
)
def test_what_a_sentence_says(text: str, kind: str | None) -> None:
    said = of_line(text)
    assert (said.kind if said is not None else None) == kind


def found(folder: Path, text: str) -> list[Finding]:
    (folder / "post.md").write_text(text)
    snapshot = load([folder / "post.md"]).snapshot
    assert snapshot is not None
    return [f for f in diagnose(snapshot).findings if f.root]


def test_two_that_ask_each_other_are_a_ring_where_somebody_says_so(tmp_path: Path) -> None:
    assert found(tmp_path, TWO_ACTORS) == []
    first = found(tmp_path, f"{TWO_ACTORS}\nEach of them waits for the other one.\n")[0]
    assert (first.cause.value, first.certainty, len(first.who)) == ("ray-get-cycle", Certainty.POSSIBLE, 2)


def test_locks_of_which_only_words_tell(tmp_path: Path) -> None:
    text = "Main thread (it has the GIL) waits for the mutex in `submit`, the heartbeat thread (it has the mutex) waits for the GIL in `Ensure`."
    first = found(tmp_path, text)[0]
    assert (first.cause.value, first.certainty) == ("lock-deadlock", Certainty.POSSIBLE)


def test_two_that_receive_from_each_other_in_functions_of_their_own(tmp_path: Path) -> None:
    sides = "".join(f"{name} TP0:\n```\n    wait_recv (kv/pipe.py:88)\n    {call} (kv/buffer.py:{n})\n```\n" for name, call, n in SIDES)
    (tmp_path / "post.md").write_text(f"{sides}Each waits for a tensor of the other.\n")
    snapshot = load([tmp_path / "post.md"]).snapshot
    assert snapshot is not None
    finding = next(f for f in diagnose(snapshot).findings if f.root)
    assert (finding.cause.value, finding.certainty, len(finding.who)) == ("lock-deadlock", Certainty.POSSIBLE, 2)


SIDES = (("Prefill", "insert", 60), ("Decode", "drop_select", 102))
