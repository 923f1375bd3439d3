"""The story of the logs on the page."""

from __future__ import annotations

from ray_rl_debug.model.log_story import LogStory, StoryEntry
from ray_rl_debug.render.html.text import count, esc, folded, name
from ray_rl_debug.render.story import moment, place, step

MAX_ENTRIES = 40
MAX_PROGRESS = 100


def draw(story: LogStory) -> str:
    """The first failure in full, then what followed and what the run survived, then how far each process came."""
    read = f"{count(story.files, 'file')}, {count(story.lines, 'line')}"
    parts = [f"<p class=note>{read}{f'. Order in time not sure: {esc(story.order, 300)}' if story.order else ''}</p>"]
    if story.first is not None:
        parts.append(f"<h3>First failure</h3>{_first(story.first)}")
    if story.then:
        parts.append(f"<h3>{story.title_of_then.capitalize()}</h3>{_list(story.then)}")
    if story.noted:
        parts.append(f"<h3>Logged as an error; nothing here says that anything ended</h3>{_list(story.noted)}")
    if story.still:
        rows = "".join(f"<li>{esc(s.text, 400)} <i>{name(s.file, 200)}:{s.line}</i></li>" for s in story.still[:MAX_ENTRIES])
        parts.append(f"<h3>Engines that gave no token</h3><ul class=plain>{rows}</ul>")
    if story.survived:
        parts.append(folded(f"What the run survived: {len(story.survived)}", _list(story.survived)))
    if story.progress:
        rows = "".join(
            f"<li><b>{name(p.who.label)}</b> {esc(step(p), 200)} <i>{name(p.file, 200)}:{p.line}</i></li>" for p in story.progress[:MAX_PROGRESS]
        )
        said = f"<p class=summary>{esc(story.stopped, 400)}</p>" if story.stopped else ""
        parts.append(f"<h3>Last sign of work</h3>{said}<ul class=plain>{rows}</ul>")
    if story.clocks:
        rows = "".join(f"<li>{name(c.where, 200)}: {esc(c.why, 300)}; shown {c.shift_s:+,.0f} s</li>" for c in story.clocks[:MAX_ENTRIES])
        parts.append(folded(f"Clocks that were moved: {len(story.clocks)}", f"<ul class=plain>{rows}</ul>"))
    return "".join(parts)


def _first(entry: StoryEntry) -> str:
    told = [f"<p class=summary><b>{name(place(entry), 400)}</b> {esc(moment(entry), 80)}</p>", f"<p>{esc(entry.text, 800)}</p>"]
    if entry.beneath:
        told.append(f"<p>raised before it: {esc(entry.beneath, 800)}</p>")
    if entry.frame:
        told.append(f"<p>at {esc(entry.frame, 300)}</p>")
    told.append(f"<p class=note>{name(entry.block_at, 320)}</p>")
    if entry.lines:
        told.append(folded("Its lines", f"<pre>{esc(chr(10).join(entry.lines), 4000).replace(chr(92) + 'n', chr(10))}</pre>"))
    if entry.title:
        told.append(f"<p><span class=chip>{esc(entry.signature, 20)}</span> {esc(entry.title, 300)}: {esc(entry.meaning, 800)}</p>")
    if entry.remedy:
        told.append(f"<p class=fix>→ {esc(entry.remedy, 800)}</p>")
    return "".join(told)


def _list(entries: tuple[StoryEntry, ...]) -> str:
    items = []
    for entry in entries[:MAX_ENTRIES]:
        known = f"<span class=chip>{esc(entry.signature, 20)}</span> " if entry.signature else ""
        why = f"<p class=note>{esc(entry.why, 300)}</p>" if entry.why else ""
        head = f"<b>{name(place(entry), 300)}</b> <i>{esc(moment(entry), 80)}</i>"
        items.append(f"<li>{known}<div>{head}<p>{esc(entry.text, 500)}</p>{why}<p class=note>{name(entry.block_at, 320)}</p></div></li>")
    return f"<ul class=evidence>{''.join(items)}</ul>"
