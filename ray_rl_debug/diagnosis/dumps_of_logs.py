"""What to dump next where the files hold no stack that tells: logs and counters say that ranks wait, and not why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.ended import ended
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.waits_ras import find_ras
from ray_rl_debug.diagnosis.dump_targets import PROGRAMS
from ray_rl_debug.model.report import Cause, Finding, NextDump, Outcome, Who
from ray_rl_debug.rules.scene import Scene

ALL_PYTHON = f"for pid in $(pgrep -f {PROGRAMS}); do py-spy dump --pid $pid; done > $(hostname).txt"
_SHOWN = 4


def of_logs(findings: Sequence[Finding]) -> Iterator[NextDump]:
    """Logs of ranks that waited in vain do not tell for whom: the stacks of all ranks do, and so does the log of the one that is missing."""
    first = findings[0] if findings else None
    if first is None or first.cause is Cause.COLLECTIVE_STALLED:
        yield NextDump(
            what="all ranks of the job, on every node, if they hang",
            command=ALL_PYTHON,
            why=first.summary if first is not None else "the files hold no stack, and no failure that ended the job",
            outcomes=(
                Outcome(seen="one rank is in another place", means="it is the one that the others wait for: its stack says why"),
                Outcome(seen="all are in the same collective", means="network or device: NCCL_DEBUG=INFO, Xid in dmesg"),
                Outcome(seen="no process of the job runs any more", means="it has ended: give the logs of all ranks"),
            ),
        )
        return
    told_pids = [w for w in first.who if w.pid is not None]
    if first.cause not in (Cause.STRAGGLER, Cause.COLLECTIVE_MISMATCH) or told_pids:
        yield _of_failure(first, told_pids)
        return
    if any(w.rank is not None for w in first.who):
        told = " and ".join(w.label for w in first.who[:4])
        yield NextDump(
            what=f"{told}, while the others wait",
            who=first.who,
            command="py-spy dump --pid PID",
            why=f"the log says that {told} did not come, and not why"
            if first.cause is Cause.STRAGGLER
            else f"the log says that {told} went elsewhere, and not on which path",
            outcomes=(
                Outcome(seen="it is in code of its own", means="that line is the cause: give its stack and the log to report together"),
                Outcome(seen="it is in another collective", means="the ranks took different paths in the program"),
                Outcome(seen="no such process", means="it died: its log holds the first failure"),
            ),
        )
        return
    yield NextDump(
        what="all ranks of the job, on every node, while they wait; after that the logs of all ranks",
        command=ALL_PYTHON,
        why=f"{first.victims[0].label if first.victims else 'a rank'} says that it waited in vain, and not for whom",
        outcomes=(
            Outcome(seen="one rank is in another place", means="it is the one that the others wait for: its stack says why"),
            Outcome(seen="all are in the same collective", means="network or device: NCCL_DEBUG=INFO, Xid in dmesg"),
            Outcome(seen="the job has ended", means="give all logs: the rank without such a line, or with the lowest SeqNum, did not come"),
        ),
    )


def _of_failure(first: Finding, named: list[Who]) -> NextDump:
    """Logs tell that something failed, and not in which place the others were: whether they still run, and their stacks if they do."""
    pids = ",".join(str(w.pid) for w in named[:_SHOWN])
    looks = f"ps -o pid,stat,wchan:32,args -p {pids}; " if pids else ""
    return NextDump(
        what=f"{' and '.join(w.label for w in first.who[:_SHOWN])}: whether it still runs; and the stacks of all that do, on every node",
        who=first.who,
        command=f"{looks}{ALL_PYTHON}",
        why=f"the files hold no stack, and say: {first.summary[:160]}",
        outcomes=(
            Outcome(seen="it has no process any more", means="it died: the last lines of its own log, and dmesg of its node, say of what"),
            Outcome(seen="it runs, and is in another place than the others", means="its stack says why: give it and the logs to report together"),
            Outcome(seen="nothing of the job runs", means="it has ended: give the logs of all ranks, the first failure is in one of them"),
        ),
    )


def of_ends(seen: Sequence[Seen]) -> Iterator[NextDump]:
    """Where all that was shown has ended, no stack is left to take: the logs hold what came first."""
    last = ended(seen[-1])
    yield NextDump(
        what="the logs of all ranks, from their first line to the end; and the stacks of what still runs",
        who=(seen[0].who(),),
        command=ALL_PYTHON,
        why=f"{seen[0].where()} has ended{f': {last.text[:100]}' if last is not None else ''}",
        outcomes=(
            Outcome(seen="another rank has an error that is older", means="that is the cause: the others were ended by it"),
            Outcome(
                seen="all waited for one rank until a limit", means="that rank is the cause: its log, and dmesg of its node, say what became of it"
            ),
            Outcome(seen="a process still runs", means="it waits for the one that has ended"),
        ),
    )


def of_counts(scene: Scene) -> Iterator[NextDump]:
    """NCCL RAS names the few ranks that differ: where these are ahead, the cause is one of the many that it does not name."""
    for world in find_ras(scene.view):
        result = world.result
        if result.kind != "behind" or any(r in world.members for r in result.behind) or not result.ahead:
            continue
        ahead = ", ".join(map(str, result.ahead[:_SHOWN]))
        yield NextDump(
            what=f"the {len(result.behind)} ranks that are behind, such as rank {result.behind[0]}; then rank {result.ahead[0]}, which is ahead",
            command=ALL_PYTHON,
            why=f"rank {ahead} launched one {result.op or 'collective'} more than the others, and RAS names no process that is behind",
            outcomes=(
                Outcome(
                    seen=f"a rank that is behind is not in {result.op or 'a collective'}", means="it keeps the others waiting: its stack says why"
                ),
                Outcome(
                    seen="all that are behind are in the same collective", means="the ranks that are ahead took another path, or the network lost one"
                ),
            ),
        )
