"""All stacks merged from the outermost frame down, the fewest processes first and never too narrow to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from ray_rl_debug.model.report import StackClass
from ray_rl_debug.render.fold import fold_labels
from ray_rl_debug.render.html.book import GROUPS, Book
from ray_rl_debug.render.html.text import count, esc, folded, frame_text, is_own, name, stack

MAX_PLACES = 20
"""Columns of the drawing; what is left out is counted and listed below."""
MAX_LISTED = 500
WEIGHTS = 100
"""Steps of a column's width; the page's style holds one rule for each."""


class _Tree:
    """Frames shared by several stacks."""

    def __init__(self, line: str) -> None:
        self.lines = [line]
        self.children: dict[str, _Tree] = {}
        self.ends: list[StackClass] = []

    def classes(self) -> Iterator[StackClass]:
        yield from self.ends
        for child in self.children.values():
            yield from child.classes()

    @property
    def weight(self) -> int:
        return sum(len(c.members) for c in self.classes())


def draw(book: Book) -> str:
    """The drawing, and every place as a list below; empty when there are no stacks."""
    classes = book.report.classes
    if not classes:
        return "<p class=none>No stacks were read.</p>"
    busy = [c for c in classes if GROUPS.get(c.kind) != "idle"]
    idle = sum(len(c.members) for c in classes) - sum(len(c.members) for c in busy)
    shown = _choose(busy, book)
    notes = []
    if len(shown) < len(busy):
        left = sum(len(c.members) for c in busy) - sum(len(c.members) for c in shown)
        notes.append(f"{count(len(busy) - len(shown), 'more place')} with {count(left, 'process')} not drawn")
    if idle:
        notes.append(f"{count(idle, 'idle process')} not drawn")
    parts = []
    if shown:
        root = _grow(shown)
        kids = _kids(root, book)
        parts.append(f'<div class="scroll ice" tabindex=0 role=region aria-label="Merged stacks, outermost frame on top">{kids}</div>')
    if notes:
        parts.append(f"<p class=note>{'; '.join(notes)}.</p>")
    parts.append(_listed(sorted(enumerate(classes), key=lambda c: _order(c[1], book)), book))
    return "".join(parts)


def _order(item: StackClass, book: Book) -> tuple[bool, bool, bool, int]:
    """The accused first; one that waits for a Ray result is a waiter by definition, so it comes late though there are few of it."""
    group = GROUPS.get(item.kind)
    return book.labels.isdisjoint(item.members), group == "idle", group == "ray", len(item.members)


def _choose(classes: Sequence[StackClass], book: Book) -> list[StackClass]:
    """All where there are few; else the accused, the smallest and the largest groups."""
    ordered = sorted(classes, key=lambda c: _order(c, book))
    if len(ordered) <= MAX_PLACES:
        return ordered
    first = ordered[: MAX_PLACES // 2]
    rest = sorted(ordered[MAX_PLACES // 2 :], key=lambda c: -len(c.members))
    return [*first, *rest[: MAX_PLACES - len(first)]]


def _grow(classes: Sequence[StackClass]) -> _Tree:
    root = _Tree("")
    for item in classes:
        here = root
        for line in reversed(item.frames):
            here = here.children.setdefault(line, _Tree(line))
        here.ends.append(item)
    for child in root.children.values():
        _squeeze(child)
    return root


def _squeeze(tree: _Tree) -> None:
    """Frames that are not shared in different ways become one block."""
    while len(tree.children) == 1 and not tree.ends:
        (only,) = tree.children.values()
        tree.lines += only.lines
        tree.children, tree.ends = only.children, only.ends
    for child in tree.children.values():
        _squeeze(child)


def _kids(tree: _Tree, book: Book) -> str:
    children = sorted(tree.children.values(), key=lambda t: min(_order(c, book) for c in t.classes()))
    total = max(1, tree.weight)
    blocks = "".join(_block(child, book, max(1, round(WEIGHTS * child.weight / total))) for child in children)
    if tree.ends and tree.children:
        blocks = "".join(_end(item, book) for item in tree.ends) + blocks
    return f"<div class=kids>{blocks}</div>" if blocks else ""


def _block(tree: _Tree, book: Book, weight: int) -> str:
    is_leaf = not tree.children
    bad = any(not book.labels.isdisjoint(c.members) for c in tree.classes())
    lines = "".join(_runs(tree.lines, is_leaf=is_leaf))
    people = "".join(_members(item, book) for item in tree.ends) if is_leaf else ""
    number = f"<span class=n>{tree.weight:,}×</span>"
    group = GROUPS.get(tree.ends[0].kind, "code") if is_leaf and tree.ends else ""
    kind = " ".join(
        x for x in ("node", f"w{weight}", "leaf" if is_leaf else "", f"k-{group}" if group else "", "bad" if bad and is_leaf else "") if x
    )
    return f'<div class="{kind}"><div class=frames>{number}{lines}{people}</div>{_kids(tree, book)}</div>'


def _end(item: StackClass, book: Book) -> str:
    """Processes that stand in a frame from which others went deeper."""
    return f'<div class="node w1 leaf k-{GROUPS.get(item.kind, "code")}"><div class=frames>{_members(item, book)}</div></div>'


def _members(item: StackClass, book: Book) -> str:
    return f"<p class=who>{name(fold_labels(item.members), 160)}</p><p class=kind>{esc(item.kind)}</p>"


def _runs(lines: Sequence[str], *, is_leaf: bool) -> Iterator[str]:
    """Own code in full, library code folded; at the end of a stack the innermost call is named, since there somebody waits."""
    runs = [(own, list(run)) for own, run in groupby(lines, is_own)]
    for position, (own, run) in enumerate(runs):
        last = is_leaf and position == len(runs) - 1 and not own
        seen = run if own else run[-1:] if last else []
        hidden = [] if own else run[:-1] if last else run
        if hidden:
            body = "".join(f"<p class=lib>{frame_text(line, brief=True)}</p>" for line in hidden)
            yield folded(f"{count(len(hidden), 'frame')} of libraries", body, kind="lib")
        yield "".join(f'<p class="{"own" if own else "lib"}">{frame_text(line, brief=True)}</p>' for line in seen)


def _listed(classes: Sequence[tuple[int, StackClass]], book: Book) -> str:
    items = []
    for position, item in classes[:MAX_LISTED]:
        group = GROUPS.get(item.kind, "code")
        word = "accused" if book.is_sure else "suspected"
        mark = f" <span class=mark>{word}</span>" if not book.labels.isdisjoint(item.members) else ""
        head = (
            f"<span class='dot k-{group}'></span><b>{len(item.members):,}×</b> {name(fold_labels(item.members), 200)} <i>{esc(item.kind)}</i>{mark}"
        )
        items.append(f"<div id=s{position}>{folded(head, stack(item.frames))}</div>")
    more = f"<p class=note>{count(len(classes) - MAX_LISTED, 'more place')} not listed.</p>" if len(classes) > MAX_LISTED else ""
    return folded(f"The same as a list: {count(len(classes), 'place')}", "".join(items) + more, kind="list")
