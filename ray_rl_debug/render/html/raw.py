"""The facts behind the page, folded: processes, coroutines, waits, worlds, nodes, Ray's tables, how long the capture took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.model.snapshot import RayState, Snapshot
from ray_rl_debug.render.fold import fold_numbers
from ray_rl_debug.render.html.book import GROUP_WORDS, Book
from ray_rl_debug.render.html.icicle import MAX_LISTED
from ray_rl_debug.render.html.text import count, esc, folded, name, seconds, size, stack, table

MAX_ROWS = 5000
MAX_ITEMS = 400


def draw(book: Book) -> str:
    return "".join(_parts(book))


def _parts(book: Book) -> Iterator[str]:
    report = book.report
    if report.processes:
        yield folded(f"Processes <i>{len(report.processes):,}</i>", _processes(book), kind="raw")
    if report.awaits:
        rows = [
            (name(a.process), f"{a.count:,}", esc(a.awaited or "", 200), esc(" → ".join(a.chain)), esc(", ".join(a.tasks), 300))
            for a in report.awaits[:MAX_ITEMS]
        ]
        yield _part("Asyncio tasks", len(report.awaits), ("process", "tasks", "awaits", "chain, outermost first", "names"), rows)
    if report.links:
        links = [
            (name(i.waiter.label), esc(i.why, 80), name(i.target.label), esc(i.evidence, 400), i.certainty.value) for i in report.links[:MAX_ITEMS]
        ]
        yield _part("Who waits for whom", len(report.links), ("waits", "how", "for", "evidence", "certainty"), links)
    if report.worlds:
        worlds = [
            (
                name(w.name),
                "" if w.size is None else f"{w.size:,}",
                esc(fold_numbers(w.ranks), 300),
                esc(fold_numbers(w.missing), 300),
                esc(w.source or "", 80),
            )
            for w in report.worlds[:MAX_ITEMS]
        ]
        yield _part("Worlds", len(report.worlds), ("world", "size", "ranks seen", "not seen", "known from"), worlds)
    if report.nodes:
        nodes = [
            (name(n.name), esc(n.ip or ""), "yes" if n.answered else "<em>no</em>", _number(n.processes), _number(n.stacks), _number(n.gpus))
            for n in report.nodes[:MAX_ITEMS]
        ]
        yield _part("Nodes", len(report.nodes), ("node", "address", "answered", "processes", "stacks", "GPUs"), nodes)
    if book.snapshot is not None:
        yield from _snapshot(book.snapshot)
    if report.timing:
        yield folded("How long the capture took", table(("step", "time"), [(esc(k, 80), seconds(v)) for k, v in report.timing.items()]), kind="raw")


def _part(title: str, many: int, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    more = f"<p class=note>{count(many - len(rows), 'more row')} in report.json.</p>" if many > len(rows) else ""
    return folded(f"{title} <i>{many:,}</i>", table(head, rows) + more, kind="raw")


def _processes(book: Book) -> str:
    """A row each, with an anchor, where there are too many those accused before others; equal stacks are written once and linked."""
    processes = book.report.processes
    accused_first = sorted(range(len(processes)), key=lambda position: not book.is_accused(processes[position].who))
    is_listed = len(book.report.classes) <= MAX_LISTED
    rows = []
    for position in sorted(accused_first[:MAX_ROWS]):
        process = processes[position]
        who = process.who
        bad = "bad" if book.is_accused(who) else ""
        group = book.group(process)
        place = book.class_of.get(process.stack) if process.stack and is_listed else None
        where = f'<a href="#s{place}">stack</a>' if place is not None else folded("stack", stack(process.stack)) if process.stack else ""
        cells = (
            f'<span class="dot k-{group}" title="{esc(GROUP_WORDS[group][1])}"></span><b>{name(who.label)}</b>',
            f"{name(who.node or '?', 80)} {who.pid if who.pid is not None else ''}",
            name(who.task or who.class_ or process.kind, 120),
            esc(process.phase or "", 40),
            esc(process.doing or "", 300),
            "" if process.cpu_percent is None else f"{process.cpu_percent:.0f} %",
            where,
        )
        rows.append(f'<tr id=p{position} class="{bad}">{"".join(f"<td>{c}</td>" for c in cells)}</tr>')
    head = "".join(f"<th scope=col>{h}</th>" for h in ("who", "node, pid", "call", "phase", "does", "CPU", "stack"))
    body = f"<table id=processes><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    box = "<label>filter <input id=find type=search autocomplete=off spellcheck=false></label> <span id=found role=status></span>"
    more = f"<p class=note>{count(len(processes) - len(rows), 'more row')} in report.json.</p>" if len(rows) < len(processes) else ""
    return f'<p class=find hidden>{box}</p><div class=scroll role=region tabindex=0 aria-label="Processes">{body}</div>{more}'


def _snapshot(snapshot: Snapshot) -> Iterator[str]:
    if snapshot.ray is not None:
        yield from _ray(snapshot.ray)
    versions = [
        (name(n.name), esc(", ".join(f"{k} {v}" for k, v in n.versions.items()), 400), _memory(n.memory_available_bytes, n.memory_total_bytes))
        for n in snapshot.nodes
    ]
    if versions:
        yield _part("Software and memory", len(versions), ("node", "versions", "memory left of"), versions[:MAX_ITEMS])


def _ray(ray: RayState) -> Iterator[str]:
    if ray.actors:
        rows = [
            (name(a.name or a.class_name), name(a.class_name), esc(a.state), _number(a.pid), f"{a.restarts:,}", esc(a.death or "", 300))
            for a in sorted(ray.actors, key=lambda a: a.state == "ALIVE")[:MAX_ITEMS]
        ]
        yield _part("Ray's actors", len(ray.actors), ("actor", "class", "state", "pid", "restarts", "death"), rows)
    if ray.tasks:
        tasks = [(name(t.name), esc(t.state), _number(t.pid), f"{t.attempt:,}", esc(t.error or "", 300)) for t in ray.tasks[:MAX_ITEMS]]
        yield _part("Ray's unfinished tasks", len(ray.tasks), ("task", "state", "pid", "attempt", "error"), tasks)
    if ray.placement_groups:
        groups = [
            (name(g.name or g.placement_group_id, 80), esc(g.state), esc(g.scheduling or ""), f"{len(g.bundles):,}", esc(g.strategy or ""))
            for g in ray.placement_groups[:MAX_ITEMS]
        ]
        yield _part("Placement groups", len(ray.placement_groups), ("group", "state", "scheduling", "bundles", "strategy"), groups)
    if ray.history:
        done = [(name(h.name), f"{h.count:,}", seconds(h.longest_s)) for h in ray.history[:MAX_ITEMS]]
        yield _part("Finished tasks", len(ray.history), ("task", "how many", "the longest"), done)


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _memory(left: int | None, total: int | None) -> str:
    return "" if left is None and total is None else f"{size(left)} / {size(total)}"
