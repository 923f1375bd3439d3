"""Every rank of every world on its node, one cell each: what kind of place it stands in, who is accused, who is missing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from ray_rl_debug.model.report import ProcessSummary, WorldSummary
from ray_rl_debug.render.fold import fold_numbers
from ray_rl_debug.render.html.book import GROUP_WORDS, Book
from ray_rl_debug.render.html.text import count, esc, name

MAX_CELLS = 4096
MAX_OTHERS = 300
MAX_NUMBERED = 128
"""Ranks of a world up to which the cells are wide enough for their numbers."""


def draw(book: Book) -> str:
    """One grid a world, then the processes that belong to none."""
    worlds: dict[str, list[ProcessSummary]] = defaultdict(list)
    others: list[ProcessSummary] = []
    for process in book.report.processes:
        if process.who.rank is not None:
            worlds[process.who.world or "?"].append(process)
        else:
            others.append(process)
    known = {w.name: w for w in book.report.worlds}
    if not worlds and not others and not known:
        return "<p class=none>No process was seen.</p>"
    used: set[str] = set()
    parts = []
    left = MAX_CELLS
    for title in sorted({*worlds, *known}, key=lambda n: (-len(worlds.get(n, ())), n)):
        members = sorted(worlds.get(title, []), key=lambda p: not book.is_accused(p.who))
        parts.append(_world(title, members[:left], known.get(title), book, used))
        if len(members) > left:
            parts.append(f"<p class=note>{count(len(members) - left, 'more rank')} not drawn.</p>")
        left = max(0, left - len(members))
    if others:
        # Driver and controllers matter more than spare processes when there is no room for all.
        others.sort(key=lambda p: (not book.is_accused(p.who), book.group(p) == "idle"))
        shown = others[:MAX_OTHERS]
        hidden = f" <i>{count(len(others) - len(shown), 'more process')} in the raw facts</i>" if len(shown) < len(others) else ""
        parts.append(f"<h3>without a rank <i>{count(len(others), 'process')}</i>{hidden}</h3>{_grid(shown, book, used, named=True)}")
    return f"{_legend(used, book)}<div class=matrix>{''.join(parts)}<p id=told class=told aria-live=polite></p></div>"


def _world(title: str, members: Sequence[ProcessSummary], world: WorldSummary | None, book: Book, used: set[str]) -> str:
    size = f" of {world.size:,}" if world is not None and world.size is not None else ""
    ranks = len(members) if members else len(world.ranks) if world is not None else 0
    missing = world.missing if world is not None else ()
    lost = f", <em>not seen: {esc(fold_numbers(missing), 300)}</em>" if missing else ""
    head = f"<h3>{name(title)} <i>{ranks:,}{size} ranks{lost}</i></h3>"
    block = ""
    if not members and world is not None and world.ranks:
        ranks_text = esc(fold_numbers(world.ranks), 300)
        return f"{head}<p class=note>Ranks {ranks_text} are alive; which process holds which rank was not seen.</p>"
    if missing:
        used.add("missing")
        cells = "".join(f'<span class="cell k-missing" title="{esc(title, 80)}/{r}: not seen">×</span>' for r in missing[:MAX_OTHERS])
        block = f"<div class=host><b>not seen</b><div class=cells>{cells}</div></div>"
    return head + _grid(sorted(members, key=lambda p: p.who.rank or 0), book, used, extra=block)


def _grid(members: Sequence[ProcessSummary], book: Book, used: set[str], *, extra: str = "", named: bool = False) -> str:
    """Cells by node. Where there are many, the nodes that differ from the most common picture come first, under a line of their own."""
    nodes: dict[str, list[ProcessSummary]] = defaultdict(list)
    for process in members:
        nodes[process.who.node or "?"].append(process)
    numbered = not named and len(members) <= MAX_NUMBERED
    dense = not named and not numbered
    blocks = {node: _host(node, found, book, used, named=named, numbered=numbered) for node, found in nodes.items()}
    kind = "named" if named else "numbered" if numbered else "dense"
    if dense:
        pictures = {node: tuple((book.group(p), book.is_accused(p.who)) for p in found) for node, found in nodes.items()}
        usual, often = Counter(pictures.values()).most_common(1)[0]
        odd = [blocks[node] for node in nodes if pictures[node] != usual]
        if odd and often > 1:
            rest = "".join(blocks[node] for node in nodes if pictures[node] == usual)
            few = f"<p class=note>{count(len(odd), 'node')} {'stands' if len(odd) == 1 else 'stand'} out:</p>{_hosts(extra + ''.join(odd), kind)}"
            return f"{few}<p class=note>{count(often, 'node')} with the same picture:</p>{_hosts(rest, kind)}"
    return _hosts(extra + "".join(blocks.values()), kind)


def _hosts(blocks: str, kind: str) -> str:
    return f'<div class="hosts {kind}">{blocks}</div>'


def _host(node: str, found: Sequence[ProcessSummary], book: Book, used: set[str], *, named: bool, numbered: bool) -> str:
    numbers = [p.who.rank for p in found if p.who.rank is not None]
    span = f" <i>{fold_numbers(numbers)}</i>" if numbers and not numbered and not named else ""
    cells = "".join(_cell(p, book, used, named=named, numbered=numbered) for p in found)
    return f"<div class=host><b>{name(node, 60)}{span}</b><div class=cells>{cells}</div></div>"


def _cell(process: ProcessSummary, book: Book, used: set[str], *, named: bool, numbered: bool) -> str:
    group = book.group(process)
    used.add(group)
    who = process.who
    bad = book.is_accused(who)
    place = f"{who.label} on {who.node}, pid {who.pid}" if who.pid is not None else who.label
    told = f"{place}: {process.doing or 'unknown'}" + (f", phase {process.phase}" if process.phase else "")
    letter = GROUP_WORDS[group][0]
    text = f"<small>{letter}</small>{name(who.label, 28) if named else who.rank}" if named or numbered else letter
    accused = f"{_word(book)}, " if bad else ""
    kind = f"cell k-{group}{' bad' if bad else ''}"
    return f'<a href="#{book.anchor(who)}" class="{kind}" title="{accused}{esc(told, 240)}">{text}</a>'


def _word(book: Book) -> str:
    return "accused" if book.is_sure else "suspected"


def _legend(used: set[str], book: Book) -> str:
    items = [f'<li><span class="cell k-{g}">{letter}</span> {words}</li>' for g, (letter, words) in GROUP_WORDS.items() if g in used]
    if book.labels:
        items.append(f'<li><span class="cell bad">!</span> {_word(book)} (red frame)</li>')
    return f"<ul class=legend>{''.join(items)}</ul>"
