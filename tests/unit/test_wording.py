"""Names and sentences that a tired reader meets first: who a process is, how an actor died, what several ranks do, which frames matter."""

from __future__ import annotations

import pytest
from scenes import ALL_REDUCE, EXECUTOR, MAIN, Stacks, actor, process, snapshot

from ray_rl_debug.analyze.deaths import how_dead
from ray_rl_debug.analyze.identity import identify
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.model.report import Cause, Certainty, Finding, Link, Report, State, Verdict, Who
from ray_rl_debug.model.snapshot import Node, Process
from ray_rl_debug.render import markdown
from ray_rl_debug.render.terminal import render
from ray_rl_debug.render.wrappers import without_wrappers
from ray_rl_debug.rules.scene import listed, stack_evidence

RAY_SAYS = (
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a"
    " connection error code 2. End of file. Some common causes include: (1) the process was killed by the OOM killer due to high memory usage,"
    " (2) ray stop --force was called."
)


@pytest.mark.parametrize(
    ("told", "kind", "short"),
    [
        (RAY_SAYS, "killed", "its process vanished: killed, crashed or out of memory (connection error code 2)"),
        ("The actor is dead because it was killed by `ray.kill`.", "killed", "The actor is dead because it was killed by `ray.kill`"),
        ("Worker exit detail: Worker exits with an exit code 1.", "exited", "Worker exits with an exit code 1"),
        (None, "out-of-scope", "out-of-scope"),
        (None, None, "unknown why"),
        ("x" * 500, None, "x" * 159 + "…"),
    ],
)
def test_a_death_in_a_few_words(told: str | None, kind: str | None, short: str) -> None:
    assert how_dead(actor(1, "Engine", 7, state="DEAD", death=told, death_kind=kind)) == short


@pytest.mark.parametrize(
    ("title", "label"),
    [
        ("/opt/env/bin/python /srv/run/tool_server.py --port 0", "tool_server.py (pid 7)"),
        ("python3.12 -m http.server … --port 80", "http.server (pid 7)"),
        ("python agl_daemon.py … --port 47471", "agl_daemon.py (pid 7)"),
        ("python … -c", "python (pid 7)"),
        ("/usr/bin/sleep 600", "sleep (pid 7)"),
        ("", "python (pid 7)"),
    ],
)
def test_a_python_is_known_by_its_program(title: str, label: str) -> None:
    one = Process(pid=7, title=title, comm="python", kind="child")
    assert identify(Node(name="n", started_time_s=0.0, window_s=1.0), one, {}, {}).label == label


def test_agent_lightning_forks_are_told_apart_by_their_stacks() -> None:
    stacks = Stacks()
    step = "Agent.solve@agent.py:30 LitAgentRunner._step_impl@agentlightning/runner/agent.py:688"
    beat = "Event.wait@threading.py:629 consumer@agentlightning/runner/agent.py:300"
    daemon = "Future.result@concurrent/futures/_base.py:451 AgentModeDaemon.run_until_all_finished@agentlightning/verl/daemon.py:717"
    title = "python train.py"
    node = stacks.node(
        [
            process(stacks, 1, title, daemon, kind="named"),
            process(stacks, 2, title, step, kind="child", extra_threads=(("Worker-1-heartbeat-consumer", beat),)),
            process(stacks, 3, title, step, kind="child"),
            process(stacks, 4, title, "main@train.py:3", kind="child"),
        ]
    )
    view = build_view(snapshot(node))
    assert [s.identity.label for s in view] == ["trainer (pid 1)", "runner Worker-1 (pid 2)", "runner (pid 3)", "train.py (pid 4)"]
    assert next(s for s in view if s.process.pid == 2).where() == "runner Worker-1 (node1 pid 2)"


def test_several_wait_where_one_waits() -> None:
    stacks = Stacks()
    texts = (f"{ALL_REDUCE} Trainer.step@app/trainer.py:40 {EXECUTOR} {MAIN}", f"Trainer.step@app/trainer.py:40 {EXECUTOR} {MAIN}", MAIN)
    view = build_view(snapshot(stacks.node([process(stacks, i + 1, "ray::Trainer.step", text) for i, text in enumerate(texts)])))
    assert [(s.at(), s.they()) for s in view] == [
        ("waits in all_reduce in Trainer.step (trainer.py:40)", "wait in all_reduce in Trainer.step (trainer.py:40)"),
        ("in Trainer.step (trainer.py:40)", "are in Trainer.step (trainer.py:40)"),
        ("idle (waits for a Ray call)", "are idle (waits for a Ray call)"),
    ]


def test_wrappers_are_left_out_unless_there_is_nothing_else() -> None:
    own = "Trainer.step (app/trainer.py:40)"
    tracing = "_resume_span (ray/util/tracing/tracing_helper.py:487)"
    loop = "Worker.main_loop (ray/_private/worker.py:1069)"
    assert without_wrappers([own, tracing, loop]) == (own,)
    assert without_wrappers([tracing, loop]) == (tracing, loop)
    assert without_wrappers(["Worker.get_objects (ray/_private/worker.py:1007)", own]) == ("Worker.get_objects (ray/_private/worker.py:1007)", own)


def test_evidence_names_the_call_and_the_own_code_around_it() -> None:
    stacks = Stacks()
    tracing = "_resume_span@ray/util/tracing/tracing_helper.py:487"
    text = f"{ALL_REDUCE} Trainer.update@app/trainer.py:20 {tracing} Trainer.step@app/trainer.py:40 {EXECUTOR} {MAIN}"
    one = next(iter(build_view(snapshot(stacks.node([process(stacks, 1, "ray::Trainer.step", text)])))))
    assert stack_evidence(one).text == "all_reduce (distributed_c10d.py:3200) < Trainer.update (trainer.py:20) < Trainer.step (trainer.py:40)"


def test_a_pid_is_told_once_and_a_long_line_is_wrapped() -> None:
    server = Who(label="tool_server.py (pid 7)", node="node1", pid=7, thread="Thread-1 (process_request_thread)", task="ToolHandler.answer_in_time")
    driver = Who(label="driver", node="node1", pid=1)
    finding = Finding(
        id="RRD502",
        name="blocked in I/O",
        cause=Cause.BLOCKED_IO,
        certainty=Certainty.LIKELY,
        summary="s",
        root=True,
        who=(server,),
        victims=(driver,),
        chain=(Link(waiter=driver, target=server, why="socket", evidence="", certainty=Certainty.PROVEN),),
    )
    report = Report(verdict=Verdict(state=State.HANG, summary="s", certainty=Certainty.LIKELY), findings=(finding,))
    lines = list(render(report, width=80, colour=False))
    assert "  who     tool_server.py  on node1, pid 7  ToolHandler.answer_in_time  thread" in lines
    assert "          Thread-1 (process_request_thread)" in lines
    assert "      └─ socket → tool_server.py (node1, pid 7)" in lines
    assert "  victims driver  (1 only waits)" in lines


def test_markdown_for_an_issue() -> None:
    server = Who(label="tool_server.py (pid 7)", node="node1", pid=7)
    finding = Finding(
        id="RRD502",
        name="blocked in I/O",
        cause=Cause.BLOCKED_IO,
        certainty=Certainty.LIKELY,
        summary="it waits",
        root=True,
        who=(server,),
        remedy=("give the call a time limit", "look at the server"),
    )
    report = Report(verdict=Verdict(state=State.HANG, summary="it waits (and 1 more)", certainty=Certainty.LIKELY), findings=(finding,))
    lines = list(markdown.render(report))
    assert lines[: lines.index("<details><summary>Full report</summary>")] == [
        "## HANG (likely)",
        "",
        "it waits (and 1 more)",
        "",
        "### RRD502 blocked in I/O (likely)",
        "",
        "- who: tool\\_server.py (node1, pid 7)",
        "",
        "What to do:",
        "",
        "1. give the call a time limit",
        "2. look at the server",
        "",
    ]


@pytest.mark.parametrize(
    ("count", "wanted"), [(0, ""), (1, "r0"), (2, "r0 and r1"), (3, "r0, r1 and r2"), (4, "r0, r1, r2 and 1 more"), (8, "r0, r1, r2 and 5 more")]
)
def test_names_in_a_sentence(count: int, wanted: str) -> None:
    assert listed([f"r{i}" for i in range(count)]) == wanted
