"""Breakpoints: who stands at one is named when somebody waits for it, and a person at work in a debugger is left alone."""

from __future__ import annotations

import pytest
from scenes import ALL_REDUCE, EXECUTOR, MAIN, Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, State
from ray_rl_debug.model.snapshot import Snapshot

UPDATE = f"{ALL_REDUCE} Trainer.update@app/trainer.py:30 {EXECUTOR} {MAIN}"
OWN = f"Trainer.score@app/trainer.py:20 {EXECUTOR} {MAIN}"
PDB = "Cmd.cmdloop@cmd.py:126 Pdb._cmdloop@pdb.py:403 Pdb.interaction@pdb.py:429 Pdb.user_line@pdb.py:314 Bdb.trace_dispatch@bdb.py:90"
RAY = "socket.accept@socket.py:294 _RemotePdb.listen@ray/util/rpdb.py:126 _connect_ray_pdb@ray/util/rpdb.py:284 set_trace@ray/util/rpdb.py:305"
BY_DEBUGPY = "Event.wait@threading.py:629 PyDB.block_until_configuration_done@debugpy/_vendored/pydevd/pydevd.py:981"


def ranks(*texts: str) -> Snapshot:
    """Three ranks; the last one has the stacks given, one for each sample or one for all."""
    stacks = Stacks()
    waiting = [process(stacks, 100 + i, "ray::Trainer.update", UPDATE, rank=i, size=3) for i in range(2)]
    return snapshot(stacks.node([*waiting, process(stacks, 102, "ray::Trainer.score", *texts, rank=2, size=3)]))


@pytest.mark.parametrize(("stop", "name"), [(PDB, "pdb"), (RAY, "Ray's debugger"), (BY_DEBUGPY, "debugpy")])
def test_a_rank_at_a_breakpoint_is_named_with_its_debugger(stop: str, name: str) -> None:
    report = diagnose(ranks(f"{stop} {OWN}"))
    finding = report.findings[0]
    assert (report.verdict.state, finding.id, [w.pid for w in finding.who]) == (State.HANG, "RRD506", [102])
    assert f"breakpoint: {name} waits for a person" in finding.summary


def test_nobody_waits_for_a_process_that_was_only_named() -> None:
    """A person may be at work there: that it was asked about makes nothing sure."""
    stacks = Stacks()
    report = diagnose(snapshot(stacks.node([process(stacks, 102, "python score.py", f"{PDB} {OWN}", kind="named")])))
    assert [(f.id, f.certainty) for f in report.findings] == [("RRD506", Certainty.POSSIBLE)]
    assert report.verdict.state is not State.HANG


@pytest.mark.parametrize(
    "texts",
    [
        (f"{PDB} {OWN}", f"step@app/model.py:9 {OWN}", f"{PDB} step@app/model.py:9 {OWN}"),  # somebody types: next, next
        (f"step@app/model.py:9 Trainer.score@app/trainer.py:20 Bdb.runcall@bdb.py:600 {EXECUTOR} {MAIN}",),  # runs below a debugger
        (f"interaction@app/game.py:7 {OWN}",),  # a name of the user's own
    ],
    ids=["a person steps", "below a debugger", "another function of that name"],
)
def test_what_only_looks_like_a_breakpoint(texts: tuple[str, ...]) -> None:
    assert [f.id for f in diagnose(ranks(*texts)).findings if f.id == "RRD506"] == []
