"""Classes of await chains and the links between them, as the report has them and as a terminal shows them."""

from __future__ import annotations

from test_coroutines import NO_PERMIT, lock, report, task

from ray_rl_debug.model.report import Report
from ray_rl_debug.model.snapshot import AsyncTask, Awaited
from ray_rl_debug.render import markdown, terminal


def pool() -> tuple[AsyncTask, ...]:
    """A gather over thirty episodes of which one holds what the others want, and waits itself for an event; and a server at rest."""
    main = task(1, Awaited(kind="gather", detail="gather of 30", tasks=tuple(range(2, 32))), "main")
    holder = task(2, Awaited(kind="event", detail="Event unset", address=5), "Agent.episode", "Agent.refill")
    rest = task(40, Awaited(kind="future", detail="Future"), "Server.serve_forever")
    beats = task(41, Awaited(kind="sleep", delay_s=5.0, due_s=1.25), "Agent.beat")
    return (main, holder, *(task(n, lock(2), "Agent.episode") for n in range(3, 32)), rest, beats)


def section(text: Report) -> str:
    lines = list(terminal.render(text, colour=False))
    start = next(i for i, line in enumerate(lines) if line.startswith("asyncio tasks"))
    return "\n".join(lines[start : lines.index("", start)])


def test_classes_are_ordered_by_what_they_tell() -> None:
    classes = report(*pool()).awaits
    assert [(c.count, c.kind, c.is_at_rest) for c in classes] == [
        (1, "event", False),
        (29, "lock", False),
        (1, "gather", False),
        (1, "sleep", False),
        (1, "future", True),
    ]
    assert {c.of for c in classes} == {33}
    assert classes[0].behind == 30
    assert classes[1].holders == ("Task-2 at Agent.refill (agent.py:20)",)
    assert classes[1].awaited == "Lock that is locked, held by Task-2 at Agent.refill (agent.py:20)"


def test_tasks_are_nodes_of_the_links() -> None:
    links = {(i.waiter.task, i.why, i.target.task or i.target.label) for i in report(*pool()).links}
    holder, others = "Task-2 at Agent.refill (agent.py:20)", "29 coroutines at Agent.episode (agent.py:10)"
    assert links == {
        ("Task-1 at main (agent.py:10)", "await", holder),
        ("Task-1 at main (agent.py:10)", "await", others),
        (others, "lock", holder),
        (holder, "event", "Event unset"),
        ("Task-40 at Server.serve_forever (agent.py:10)", "future", "Future"),
    }


def test_a_lock_without_holder_leads_to_nobody() -> None:
    (link,) = report(*(task(n, NO_PERMIT, "Agent.episode") for n in range(8))).links
    assert (link.waiter.task, link.why, link.target.label) == ("8 coroutines at Agent.episode (agent.py:10)", "semaphore", "nobody (Semaphore)")


def test_text_under_the_process() -> None:
    assert section(report(*pool())) == (
        "asyncio tasks  equal chains merged, the most important first\n"
        f"  {report(*pool()).awaits[0].process}: 33 tasks\n"
        "    1× waits for Event unset; 30 behind it\n"
        "        Agent.refill (/job/agent.py:20)\n"
        "        Agent.episode (/job/agent.py:10)\n"
        "    29× wait for Lock that is locked, held by Task-2 at Agent.refill (agent.py:20)\n"
        "        Agent.episode (/job/agent.py:10)\n"
        "    1× waits for gather of 30\n"
        "        main (/job/agent.py:10)\n"
        "    … 2 tasks in 2 more places (-v)"
    )


def test_markdown_tells_the_coroutines_of_the_accused() -> None:
    lines = list(markdown.render(report(*(task(n, NO_PERMIT, "Agent.episode") for n in range(8)))))
    assert any(line.startswith("- coroutines: 8× at Agent.episode (/job/agent.py:10) for Semaphore with 0 permits") for line in lines)
