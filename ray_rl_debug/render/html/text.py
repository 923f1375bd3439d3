"""The only way text from outside gets into the page: neutralised, bounded, escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from ray_rl_debug.analyze.library_frames import is_library
from ray_rl_debug.model.report import Who
from ray_rl_debug.model.snapshot import Frame
from ray_rl_debug.render.fold import fold_labels
from ray_rl_debug.render.writer import neutralise

MAX_TEXT = 1200
"""Characters of one text; the middle of a longer one is left out."""

_LINE = re.compile(r"^(?P<function>.*) \((?P<file>.*?)(?::(?P<line>\d+))?\)$", re.DOTALL)


def esc(text: object, limit: int = MAX_TEXT) -> str:
    """`text` fit for an element or a quoted attribute; control and bidirectional characters are spelled out."""
    return html.escape(clip(neutralise(str(text)), limit), quote=True)


def clip(text: str, limit: int) -> str:
    """At most `limit` characters; the end of a long name tells as much as its beginning, so the middle goes."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 1]}…{text[-tail:]}"


def name(text: object, limit: int = 160) -> str:
    """A name from outside, kept from changing the direction of the text around it."""
    return f"<bdi>{esc(text, limit)}</bdi>"


def count(number: int, noun: str) -> str:
    """``1 process``, ``3 processes``."""
    return f"{number:,} {noun if number == 1 else f'{noun}es' if noun.endswith('s') else f'{noun}s'}"


def waiting(number: int) -> str:
    """``1 process only waits``, ``3 processes only wait``."""
    return f"{count(number, 'process')} only {'waits' if number == 1 else 'wait'}"


def people(who: Iterable[Who]) -> str:
    """Folded labels; equal ones are told apart by their pids."""
    who = list(who)
    labels = [w.label for w in who]
    often = {label for label in labels if labels.count(label) > 1} if len(labels) < 200 else set()
    return fold_labels([f"{w.label} pid {w.pid}" if w.pid and w.label in often else w.label for w in who])


def seconds(value: float) -> str:
    """``850 ms``, ``12.3 s``, ``7 min 05 s``, ``3 h 12 min``."""
    if value < 0.9995:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def size(value: int | None) -> str:
    """``1.5 GiB``; a dash when not measured."""
    if value is None:
        return "–"
    for unit, factor in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= factor:
            return f"{value / factor:.1f} {unit}"
    return f"{value} B"


def split_line(line: str) -> tuple[str, str, int | None]:
    """``function (file:line)`` taken apart; a text of another form is all function."""
    found = _LINE.match(line.removesuffix(" ()"))
    if not found:
        return line.removesuffix(" ()"), "", None
    return found["function"], found["file"], int(found["line"]) if found["line"] else None


def is_own(line: str) -> bool:
    """Is a line of a stack of the user's or the framework's code, not of the interpreter's, torch's or Ray's?"""
    function, file, number = split_line(line)
    return bool(file) and not is_library(Frame(function=function, file=file, line=number))


def stack_lines(lines: Sequence[str]) -> Iterator[str]:
    """List items of a stack, innermost first: own code stands out; of library code only the innermost call is shown unfolded."""
    for position, (own, run) in enumerate((own, list(run)) for own, run in groupby(lines, is_own)):
        if own or (len(run) == 1 and position == 0):
            yield from (_stack_line(line) for line in run)
            continue
        if position == 0:
            yield _stack_line(run[0])
            run = run[1:]
        inner = "".join(_stack_line(line) for line in run)
        yield f"<li class=fold><details><summary>{count(len(run), 'frame')} of libraries</summary><ol>{inner}</ol></details></li>"


def stack(lines: Sequence[str]) -> str:
    """A stack as an ordered list."""
    return f"<ol class=stack>{''.join(stack_lines(lines))}</ol>"


def _stack_line(line: str) -> str:
    return f"<li{' class=own' if is_own(line) else ''}>{frame_text(line)}</li>"


def frame_text(line: str, *, brief: bool = False) -> str:
    """Function and place of one line of a stack; `brief` leaves out the folder."""
    function, file, number = split_line(line)
    file = file.rsplit("/", 1)[-1] if brief else file
    place = f"{file}:{number}" if number else file
    return f"<b>{name(function, 200)}</b>" + (f" <i>{name(place, 300)}</i>" if place else "")


def facts(pairs: Iterable[tuple[str, str | None]]) -> str:
    """A list of terms; values are markup already, those that are None or empty are left out."""
    return "<dl class=facts>" + "".join(f"<div><dt>{esc(k)}</dt><dd>{v}</dd></div>" for k, v in pairs if v) + "</dl>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, kind: str = "") -> str:
    """A table in a box that scrolls by itself; cells are markup already."""
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    heads = "".join(f"<th scope=col>{esc(h)}</th>" for h in head)
    label = f'<div class="scroll {kind}" role=region tabindex=0 aria-label="{esc(", ".join(head), 200)}">'
    return f"{label}<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"


def folded(summary: str, body: str, *, is_open: bool = False, kind: str = "") -> str:
    """A part that opens on demand; `summary` and `body` are markup already."""
    return f"<details{' open' if is_open else ''}{f' class={kind}' if kind else ''}><summary>{summary}</summary>{body}</details>"
