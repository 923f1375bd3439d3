"""What torch's watchdog says of a collective that timed out, and how far its rank had come."""

from __future__ import annotations

import re

from ray_rl_debug.model.snapshot.log_book import LogCollective

_WORK = re.compile(r"WorkNCCL\((?:SeqNum=(?P<seq>\d{1,15}), )?OpType=(?P<op>\w{1,60})(?:, NumelIn=(?P<elements>\d{1,18}))?")
_STATUS = re.compile(
    r"\bwork(?: sequence id)?(?: at)?: (?P<seq>-?\d{1,15})(?: PG status:|,) "
    r"last enqueued (?:NCCL )?work: (?P<enqueued>-?\d{1,15}), last completed (?:NCCL )?work: (?P<completed>-?\d{1,15})"
)
"""``Timeout at NCCL work: 37, last …`` (torch 2.2), ``… detected by watchdog at work: 37, last …`` (2.4), ``… work sequence id: 37 PG status: …``."""
_GROUP = re.compile(r"\[PG (?:ID \d{1,9} PG GUID (?P<group>[^\]\s]{1,120})|(?P<default>0)(?: \(default_pg\))?) Rank \d{1,6}\]")
"""Torch 2.3 and older give the number on this rank alone, which is that of another group elsewhere; only 0 is the same group for all."""


def read_collective(line: str) -> LogCollective | None:
    """The account in a whole line; None where it holds none."""
    work, status = (_WORK.search(line), None) if "WorkNCCL(" in line else (None, _STATUS.search(line) if "last enqueued" in line else None)
    found = work or status
    if found is None:
        return None
    group = _GROUP.search(line)
    return LogCollective(
        seq=int(found["seq"]) if found["seq"] is not None else None,
        group=(group["group"] or f"{group['default']}(default_pg)") if group is not None else None,
        op=work["op"] if work is not None else None,
        elements=int(work["elements"]) if work is not None and work["elements"] else None,
        enqueued=int(status["enqueued"]) if status is not None else None,
        completed=int(status["completed"]) if status is not None else None,
    )
