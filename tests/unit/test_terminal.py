"""The terminal report: golden text, hostile strings, folding, nothing hidden."""

from __future__ import annotations

import msgspec

from ray_rl_debug.model.report import (
    AwaitClass,
    Cause,
    Certainty,
    Evidence,
    Finding,
    Link,
    NodeSummary,
    Report,
    StackClass,
    State,
    Verdict,
    Who,
    WorldSummary,
)
from ray_rl_debug.model.snapshot import Gap
from ray_rl_debug.render import markdown
from ray_rl_debug.render.fold import fold_labels, fold_numbers
from ray_rl_debug.render.terminal import render
from ray_rl_debug.render.writer import neutralise

DRIVER = Who(label="driver", node="n0", pid=100)
RUNNER = Who(label="TaskRunner", node="n0", pid=200, class_="TaskRunner", task="TaskRunner.run")


def rank(i: int) -> Who:
    return Who(label=f"actor/{i}", node=f"n{i // 8}", pid=5000 + i, actor=f"WorkerDict_{i // 8}:{i % 8}", world="actor", rank=i, class_="WorkerDict")


def big_report(ranks: int = 64) -> Report:
    culprit = rank(37)
    waiting = tuple(rank(i) for i in range(ranks) if i != 37)
    chain = (
        Link(waiter=DRIVER, target=RUNNER, why="ray.get", evidence="task TaskRunner.run", certainty=Certainty.PROVEN),
        Link(waiter=RUNNER, target=rank(0), why="ray.get", evidence="task WorkerDict.update_actor", certainty=Certainty.PROVEN),
        Link(waiter=rank(0), target=culprit, why="all_reduce", evidence="63 of 64 ranks wait in it", certainty=Certainty.LIKELY),
    )
    finding = Finding(
        id="RRD101",
        name="collective straggler",
        cause=Cause.STRAGGLER,
        certainty=Certainty.LIKELY,
        root=True,
        phase="reward",
        summary="actor/37 never entered the all_reduce in which 63 ranks wait.",
        who=(culprit,),
        victims=(*waiting, RUNNER, DRIVER),
        evidence=(
            Evidence(kind="stack", where="actor/37", text="stands in compute_score (reward.py:88), equal in 3 samples over 4 s"),
            Evidence(kind="collective", where="actor/0-36,38-63", text="wait in all_reduce at dp_actor.py:30"),
        ),
        remedy=("Read the stack of actor/37 below: what does compute_score wait for?", "Give the reward function a time-out."),
        chain=chain,
    )
    return Report(
        verdict=Verdict(
            state=State.HANG,
            summary="actor/37 (n4, pid 5037) is stuck in reward.py:88 while 63 ranks wait for it in all_reduce.",
            certainty=Certainty.LIKELY,
            next="rayrl-debug explain RRD101",
        ),
        findings=(
            finding,
            msgspec.structs.replace(finding, id="RRD401", name="queued call", cause=Cause.RAY_QUEUED_CALL, root=False, summary="A call is queued."),
        ),
        gaps=(
            *tuple(
                Gap(id="RRD902", where=f"n{i}", what="stacks of 2 processes", reason="the kernel refused ptrace access", remedy="rayrl-debug doctor")
                for i in range(3)
            ),
            Gap(id="RRD901", where="n9", what="everything", reason="no answer in 60 s"),
        ),
        nodes=(*tuple(NodeSummary(name=f"n{i}", processes=10, stacks=10, gpus=8) for i in range(8)), NodeSummary(name="n9", answered=False)),
        worlds=(WorldSummary(name="actor", size=65, ranks=tuple(range(64)), missing=(64,)),),
        classes=(
            StackClass(frames=tuple(f"f{i} (dp_actor.py:{i})" for i in range(20)), members=tuple(w.label for w in waiting), kind="collective"),
            StackClass(frames=("compute_score (reward.py:88)", "update (dp_actor.py:12)"), members=("actor/37",), kind="user"),
            StackClass(frames=("main_loop (ray/_private/worker.py:1069)",), members=tuple(f"idle-{i}" for i in range(40)), kind="idle"),
        ),
        awaits=(AwaitClass(process="n0/200", count=512, chain=("generate", "post"), awaited="semaphore value=0"),),
    )


GOLDEN = """\
HANG (likely): actor/37 (n4, pid 5037) is stuck in reward.py:88 while 63 ranks wait for it in
      all_reduce.

RRD101 collective straggler  straggler, likely, in phase reward
  actor/37 never entered the all_reduce in which 63 ranks wait.
  who     actor/37  on n4, pid 5037  actor WorkerDict_4:5  WorkerDict
  victims actor/0-36,38-63, TaskRunner, driver  (65 only wait)
  chain
    driver (n0, pid 100)
      └─ ray.get → TaskRunner (n0, pid 200)   (task TaskRunner.run)
      └─ ray.get → actor/0 (n0, pid 5000)   (task WorkerDict.update_actor)
      └─ all_reduce → actor/37 (n4, pid 5037)   (63 of 64 ranks wait in it, likely)
  evidence
    stack  actor/37: stands in compute_score (reward.py:88), equal in 3 samples over 4 s
    collective  actor/0-36,38-63: wait in all_reduce at dp_actor.py:30
  remedy
    - Read the stack of actor/37 below: what does compute_score wait for?
    - Give the reward function a time-out.

also seen
  RRD401 queued call (likely): A call is queued.

stacks  processes in the same place, the fewest first
  1× actor/37  [user]
      compute_score (reward.py:88)
      update (dp_actor.py:12)
  63× actor/0-36,38-63  [collective]
      f0 (dp_actor.py:0)
      f1 (dp_actor.py:1)
      f2 (dp_actor.py:2)
      f3 (dp_actor.py:3)
      f4 (dp_actor.py:4)
      f5 (dp_actor.py:5)
      … 14 more frames (-v)
  … 40 idle processes (-v)

asyncio tasks  equal chains merged, the most important first
  n0/200: 512 tasks
    512× wait for semaphore value=0
        post
        generate

worlds
  actor: 64 of 65 ranks seen, not seen: 64

not seen
  RRD902 n0-2: stacks of 2 processes (the kernel refused ptrace access)
      → rayrl-debug doctor
  RRD901 n9: everything (no answer in 60 s)

nodes  8 of 9 answered, 80 processes, stacks of 80, 64 GPUs: n0-7
  silent: n9

next: rayrl-debug explain RRD101
"""


def text(report: Report, **options: bool) -> str:
    return "".join(f"{line}\n" for line in render(report, **{"colour": False, **options}))


def test_golden_text_of_a_64_rank_job() -> None:
    assert text(big_report()) == GOLDEN


def test_folded_report_is_short_and_verbose_holds_everything() -> None:
    assert GOLDEN.count("\n") <= 60
    verbose = text(big_report(), verbose=True)
    assert "f19 (dp_actor.py:19)" in verbose
    assert "idle-0-39  [idle]" in verbose
    assert "more frames" not in verbose


def test_thirty_of_everything_stays_readable() -> None:
    report = big_report()
    report = msgspec.structs.replace(
        report,
        findings=tuple(msgspec.structs.replace(report.findings[0], id=f"RRD{i}") for i in range(101, 131)),
        gaps=tuple(Gap(id=f"RRD9{i:02}", where="n0", what="x", reason=f"reason {i}", remedy="do") for i in range(30)),
        classes=tuple(StackClass(frames=report.classes[0].frames, members=(f"a/{i}",), kind="user") for i in range(30)),
    )
    lines = text(report).splitlines()
    assert len(lines) <= 100
    assert any("and 25 more kinds" in line for line in lines)


def test_victims_that_share_name_and_number_are_told_by_their_nodes() -> None:
    report = big_report()
    pods = tuple(Who(label="trainer", node=f"worker-{i}", pid=17) for i in range(2))
    finding = msgspec.structs.replace(report.findings[0], victims=pods)
    assert "victims trainer on worker-0,1  (2 only wait)" in text(msgspec.structs.replace(report, findings=(finding,)))


def test_escape_sequences_are_spelled_out() -> None:
    evil = "\x1b]0;owned\x07\x1b[2Jname\r\nnext\u202eevil\x9b31m"
    assert neutralise(evil) == "\\x1b]0;owned\\x07\\x1b[2Jname\\r\\nnext\\u202eevil\\x9b31m"
    report = big_report()
    finding = msgspec.structs.replace(
        report.findings[0],
        name=evil,
        summary=evil,
        who=(Who(label=evil, node=evil, pid=1, actor=evil, world=evil, rank=0, class_=evil, task=evil, thread=evil),),
        victims=(Who(label=evil),),
        evidence=(Evidence(kind="log", where=evil, text=evil),),
        remedy=(evil,),
        chain=(Link(waiter=Who(label=evil), target=Who(label=evil), why=evil, evidence=evil, certainty=Certainty.POSSIBLE),),
    )
    report = msgspec.structs.replace(
        report,
        verdict=Verdict(state=State.HANG, summary=evil, certainty=Certainty.LIKELY, next=evil),
        findings=(finding, msgspec.structs.replace(finding, root=False)),
        gaps=(Gap(id=evil, where=evil, what=evil, reason=evil, remedy=evil),),
        nodes=(NodeSummary(name=evil), NodeSummary(name=evil, answered=False)),
        classes=(StackClass(frames=(evil,), members=(evil,), kind=evil),),
        awaits=(AwaitClass(process=evil, count=1, chain=(evil,), awaited=evil, tasks=(evil,)),),
        worlds=(WorldSummary(name=evil, size=None, ranks=()),),
    )
    for verbose in (False, True):
        shown = text(report, verbose=verbose)
        assert not [c for c in shown if c in "\x1b\x07\r\u202e\x9b"]
    assert "\x1b" not in "\n".join(markdown.render(report))


def test_colours_are_only_added() -> None:
    coloured = list(render(big_report(), colour=True))
    assert coloured[0].startswith("\x1b[31;1mHANG\x1b[0m (likely): actor/37")


def test_no_gaps_is_said() -> None:
    report = Report(verdict=Verdict(state=State.HEALTHY, summary="All is well.", certainty=Certainty.LIKELY))
    assert text(report).splitlines() == [
        "HEALTHY (likely): All is well.",
        "",
        "not seen  nothing is missing from this capture",
        "",
        "next: rayrl-debug snapshot -o hang --samples 5",
    ]


def test_unknown_has_no_certainty() -> None:
    report = Report(verdict=Verdict(state=State.UNKNOWN, summary="Half of the nodes are silent.", certainty=Certainty.POSSIBLE))
    assert text(report).startswith("UNKNOWN: Half of the nodes are silent.\n")


def test_fold() -> None:
    assert fold_labels(["actor/0", "actor/1", "actor/2", "actor/4", "driver", "critic/7"]) == "actor/0-2,4, driver, critic/7"
    assert fold_labels(["driver", "driver"]) == "driver ×2"
    assert fold_labels(["rank01", "rank02"]) == "rank01, rank02"
    assert fold_numbers([5, 1, 2, 2]) == "1,2,5"


def test_markdown_cannot_be_broken_out_of() -> None:
    report = Report(verdict=Verdict(state=State.HANG, summary="``` <script> @team", certainty=Certainty.LIKELY))
    lines = list(markdown.render(report))
    assert "\\`\\`\\` \\<script\\> \\@team" in lines
    assert "````text" in lines


def test_the_text_of_many_ranks_is_as_short_as_that_of_eight() -> None:
    def lines(ranks: int) -> list[str]:
        victims = tuple(Who(label=f"actor/{rank}", node="n1", pid=1_000 + rank) for rank in range(1, ranks))
        finding = Finding(id="RRD101", name="straggler", cause=Cause.STRAGGLER, certainty=Certainty.LIKELY, summary="s", root=True, victims=victims)
        return list(render(Report(verdict=Verdict(state=State.HANG, summary="x", certainty=Certainty.LIKELY), findings=(finding,)), colour=False))

    assert len(lines(100_000)) == len(lines(8))
    assert "victims actor/1-99999  (99999 only wait)" in " ".join(lines(100_000))
