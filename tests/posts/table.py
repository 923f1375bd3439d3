"""``python tests/posts/table.py [FOLDER]``: every post, and how many were read, named, accused wrongly."""

from __future__ import annotations

import sys
from pathlib import Path

from corpus import HERE, Outcome, outcomes, percent


def row(one: Outcome) -> str:
    first = next(iter(one.roots), None)
    said = f"{first.cause.value} ({first.certainty.value}) {', '.join(w.label for w in first.who)[:28]}" if first else "-"
    if one.accuses_wrongly:
        verdict = "WRONG"
    elif one.is_established:
        verdict = "named" if one.is_named else "missed"
    else:
        verdict = "told next" if one.tells_next else "no advice"
    state = one.report.verdict.state.value if one.report is not None else "-"
    return f"{one.name[:30]:30} {'read' if one.is_read else 'UNREAD':6} {one.truth['cause'][:20]:20} {state:8} {verdict:9} {said}"


def summary(found: list[Outcome]) -> list[str]:
    established = [o for o in found if o.is_established]
    open_ = [o for o in found if not o.is_established]
    return [
        f"posts {len(found)} of {len({o.form for o in found})} forms",
        f"every stack read: {percent(sum(o.is_read for o in found), len(found))}",
        f"cause in the first hypothesis: {percent(sum(o.is_named for o in established), len(established))}",
        f"what to dump next, where stacks cannot tell: {percent(sum(o.tells_next for o in open_), len(open_))}",
        f"accused wrongly with likely or more: {sum(o.accuses_wrongly for o in found)}",
    ]


def main() -> None:
    found = list(outcomes(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE))
    print("\n".join([*map(row, found), "", *summary(found)]))


if __name__ == "__main__":
    main()
