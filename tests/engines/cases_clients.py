"""AReaL's rollouts on a real vLLM, and pools of reward workers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from engines.pool_program import KINDS
from engines.processes import stopped
from engines.programs import Areal, Pool, Stepping
from engines.truth import HEALTHY, Case, Truth

PROGRAMS: dict[str, Callable[[], Stepping]] = {"areal": Areal, **{f"pool-{kind}": (lambda kind=kind: Pool(kind)) for kind in KINDS}}


@contextlib.contextmanager
def runs(program: Stepping) -> Iterator[tuple[int, ...]]:
    yield ()


@contextlib.contextmanager
def engine_stopped(program: Areal) -> Iterator[tuple[int, ...]]:
    pid = program.find("VLLM::EngineCore")
    with stopped(pid):
        program.await_stand()
        yield (pid,)


@contextlib.contextmanager
def gate_closed(program: Areal) -> Iterator[tuple[int, ...]]:
    """Somebody pauses the server and forgets to open it; AReaL opens it only at the end of a step, which does not come."""
    program.server.ask("POST", "/pause?mode=keep")
    program.await_stand()
    yield (program.server.pid, program.find("VLLM::EngineCore"))
    program.server.ask("POST", "/resume")


@contextlib.contextmanager
def version_kept(program: Areal) -> Iterator[tuple[int, ...]]:
    (program.folder / "trouble").write_text("version")
    try:
        program.await_stand()
        yield (program.child.pid,)
    finally:
        (program.folder / "trouble").unlink()


CASES = (
    Case("areal-runs", "areal", runs, HEALTHY, wait_s=0),
    Case("areal-core-stopped", "areal", engine_stopped, Truth(("hang",), ("process-stopped",))),
    Case("areal-paused", "areal", gate_closed, Truth(("hang",), ("engine-paused",))),
    Case("areal-version-kept", "areal", version_kept, Truth(("hang",), ("staleness-gate",), "areal"), is_fatal=True),
    *(Case(f"pool-{kind}", f"pool-{kind}", runs, HEALTHY, wait_s=0) for kind in KINDS),
)
