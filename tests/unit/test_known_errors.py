"""Known errors in logs: what they support, when they accuse, and that the echo of another's end never does."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from scenes import ALL_REDUCE, EXECUTOR, IDLE, MAIN, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug import signatures
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Cause, Certainty, Report, State
from ray_rl_debug.model.snapshot import LogLine, OwnedTask, Snapshot

UPDATE = f"Trainer.update_policy@app/trainer.py:20 {EXECUTOR} {MAIN}"
CUDA = "RuntimeError: CUDA error: an illegal memory access was encountered"
CASCADE = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."


def line(text: str, file: str = "worker-ab-01000000-102.err") -> LogLine:
    from ray_rl_debug.signatures.match import Matcher

    found = Matcher().match_line(text)
    assert found is not None
    return LogLine(file=f"/tmp/ray/session/logs/{file}", line_number=7, text=text, signature=found.id)


def report_on(*texts: str, folder: Path) -> Report:
    folder.mkdir(exist_ok=True)
    (folder / "driver.log").write_text("step 1\n" + "\n".join(texts) + "\n")
    found = load([folder]).snapshot
    assert found is not None
    return diagnose(found)


@pytest.mark.parametrize("signature", [s for s in signatures.load() if s.effect == "critical"], ids=lambda s: s.id)
def test_every_critical_line_alone_is_named_and_is_no_verdict_of_a_hang(signature: signatures.Signature, tmp_path: Path) -> None:
    found = report_on(signature.matches[0], folder=tmp_path / "logs")
    assert [f.id for f in found.findings] == [signature.id]
    assert found.verdict.state is State.UNKNOWN
    assert signature.title in found.verdict.summary
    assert found.findings[0].evidence[0].kind == "log"


@pytest.mark.parametrize("signature", [s for s in signatures.load() if s.effect != "critical"], ids=lambda s: s.id)
def test_cascades_and_notes_accuse_nobody(signature: signatures.Signature, tmp_path: Path) -> None:
    found = report_on(*signature.matches, folder=tmp_path / "logs")
    assert (found.verdict.state, found.findings) == (State.UNKNOWN, ())


@pytest.mark.parametrize(
    ("text", "cause", "pid"),
    [
        ("[981234.1] INFO: task python:4242 blocked for more than 120 seconds.", Cause.BLOCKED_IO, 4242),
        ("[981234.1] watchdog: BUG: soft lockup - CPU#17 stuck for 23s! [python:4242]", Cause.STRAGGLER, 4242),
        ("[981234.1] rcu: INFO: rcu_sched self-detected stall on CPU", Cause.STRAGGLER, None),
    ],
)
def test_a_processor_that_the_kernel_keeps_waits_for_no_disk(text: str, cause: Cause, pid: int | None, tmp_path: Path) -> None:
    finding = report_on(text, folder=tmp_path / "logs").findings[0]
    assert (finding.cause, finding.who[0].pid, finding.victims) == (cause, pid, ())


def test_the_cause_comes_before_its_echo(tmp_path: Path) -> None:
    watchdog = next(s for s in signatures.load() if s.slug == "nccl-watchdog-timeout").matches[0]
    killed = next(s for s in signatures.load() if s.slug == "kernel-oom-killer").matches[0]
    found = report_on(watchdog, CASCADE, killed, folder=tmp_path / "logs")
    assert [(f.name, f.certainty) for f in found.findings] == [
        ("the kernel killed a process for lack of memory", Certainty.LIKELY),
        ("a collective timed out", Certainty.POSSIBLE),
    ]


def waiting(*lines: LogLine, at: str = f"Trainer.load@app/trainer.py:9 {EXECUTOR} {MAIN}", moving: bool = False) -> Snapshot:
    """Two ranks in a collective, a third one elsewhere, whose log has `lines`."""
    stacks = Stacks()
    found = [process(stacks, 100 + i, "ray::Trainer.update_policy", f"{ALL_REDUCE} {UPDATE}", rank=i, size=3) for i in range(2)]
    texts = (at, at.replace(":9", ":10"), at) if moving else (at,)
    last = process(stacks, 102, "ray::Trainer.update_policy", *texts, rank=2, size=3, cpu_s=1.9 if moving else 0.0)
    found.append(msgspec.structs.replace(last, log_lines=lines))
    return snapshot(stacks.node(found))


def test_a_critical_line_supports_the_finding_about_its_writer() -> None:
    found = diagnose(waiting(line(CUDA)))
    assert [w.rank for w in found.findings[0].who] == [2]
    assert [e.text for e in found.findings[0].evidence if e.kind == "log"] == [CUDA]


def test_a_cascade_line_supports_nothing() -> None:
    found = diagnose(waiting(line(CASCADE)))
    assert [e for f in found.findings for e in f.evidence if e.kind == "log"] == []


def test_a_dead_process_is_known_by_its_file() -> None:
    stacks = Stacks()
    dead = actor(7, "RolloutWorker", 102, state="DEAD", death="killed")
    driver = process(stacks, 50, "python", f"{RAY_GET} main@train.py:9", kind="driver", refs=[task_id(1)])
    node = stacks.node([driver], log_lines=(line(CUDA), line(CUDA, "worker-ab-01000000-999.err")))
    owned = OwnedTask(task_id=task_id(1), name="RolloutWorker.generate", actor_id=dead.actor_id, status="SUBMITTED_TO_WORKER")
    found = diagnose(snapshot(node, ray_state(actors=[dead], cores=[msgspec.structs.replace(core(50, owned=[owned]), kind="DRIVER")])))
    told = [e.where for f in found.findings for w in f.who if w.pid == 102 for e in f.evidence if e.kind == "log"]
    assert told == ["/tmp/ray/session/logs/worker-ab-01000000-102.err:7"]


def test_old_errors_of_idle_or_moving_processes_accuse_nobody() -> None:
    stacks = Stacks()
    idle = msgspec.structs.replace(process(stacks, 102, "ray::Trainer", IDLE), log_lines=(line(CUDA),))
    assert diagnose(snapshot(stacks.node([idle], log_lines=(line(CUDA, "raylet.err"),)))).findings == ()
    moving = diagnose(waiting(line(CUDA), moving=True))
    assert not [f for f in moving.findings if f.certainty is not Certainty.POSSIBLE]


def test_ids_of_known_errors_are_explained() -> None:
    from ray_rl_debug.commands.catalogue import explain

    text = explain("rrd605")
    assert text is not None
    assert "memory limit" in text
    assert "\nRemedy\n" in text


def test_tables_name_known_errors_that_exist() -> None:
    from ray_rl_debug.rules import known_error

    critical = {f"{s.layer}/{s.slug}" for s in signatures.load() if s.effect == "critical"}
    assert known_error._OF_SLUG.keys() <= critical
    assert {f"{s.layer}/{s.slug}" for s in signatures.load() if s.late} <= critical
    assert known_error._OF_LAYER.keys() <= {s.layer for s in signatures.load()}
