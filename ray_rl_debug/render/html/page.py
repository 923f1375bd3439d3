"""The page: verdict on top, then the cause, the ranks, the time, the stacks, what was not seen, the raw facts.

Style and script stand in the page and are allowed by their hashes alone, so a text that slipped through the escaping could still not run
or load anything. There are no inline styles and no inline handlers. Without the script all is there; it adds keys, a filter and copying.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import datetime, timezone
from functools import cache
from importlib.resources import files

from ray_rl_debug.model.report import Report, State
from ray_rl_debug.model.snapshot import Snapshot
from ray_rl_debug.model.timeline_tables import Tables
from ray_rl_debug.render.html import findings, icicle, matrix, missing, next_looks, phases, raw, story, strips
from ray_rl_debug.render.html.book import Book, open_book
from ray_rl_debug.render.html.findings import MAX_HEAD
from ray_rl_debug.render.html.strips import Strip
from ray_rl_debug.render.html.text import count, esc
from ray_rl_debug.render.symptoms import tell_symptoms

_MARKS = {
    State.HANG: ("HANG", "%23c8102e"),
    State.SLOW: ("SLOW", "%23b86e00"),
    State.HEALTHY: ("HEALTHY", "%23157f3d"),
    State.FINISHED: ("FINISHED", "%23157f3d"),
    State.UNKNOWN: ("UNKNOWN", "%236b5b00"),
}


def render(report: Report, snapshot: Snapshot | None = None, *, history: Sequence[Strip] = (), tables: Tables | None = None) -> str:
    """One HTML document.

    Without the snapshot there are no times and GPUs; `history` is what a companion saw before the capture, `tables` those of the timeline.
    """
    book = open_book(report, snapshot)
    sections = [
        ("cause", "Why" if report.findings else "Findings", findings.draw(book)),
        *([("next", "What to dump next", text)] if (text := next_looks.draw(report)) else []),
        *([("logs", "What the logs tell", story.draw(report.story))] if report.story is not None else []),
        ("ranks", "Where everybody stands", matrix.draw(book)),
        ("time", "Over time", strips.draw(book, history)),
        *([("phases", "The run so far", text)] if tables is not None and (text := phases.draw(tables)) else []),
        ("stacks", "Stacks, the fewest first", icicle.draw(book)),
        ("gaps", "What was not seen", missing.draw(report)),
        ("raw", "Raw facts", raw.draw(book)),
    ]
    short = {
        "cause": "Why",
        "next": "Dump next",
        "logs": "Logs",
        "ranks": "Ranks",
        "time": "Time",
        "phases": "Phases",
        "stacks": "Stacks",
        "gaps": "Not seen",
        "raw": "Raw facts",
    }
    nav = "".join(f'<a href="#{key}">{short[key]}</a>' for key, _, _ in sections)
    body = "".join(f'<section id={key} aria-labelledby="h-{key}"><h2 id="h-{key}">{title}</h2>{text}</section>' for key, title, text in sections)
    word, colour = _MARKS[report.verdict.state]
    return document(
        title=f"{word}: {esc(report.verdict.summary, 110)}",
        colour=colour,
        kind=report.verdict.state.value,
        header=_header(book, word),
        nav=nav,
        body=body,
        first="cause",
        footer=footer(report.tool_version, report.schema),
    )


def document(*, title: str, colour: str, kind: str, header: str, nav: str, body: str, first: str, footer: str) -> str:
    """The frame of every page: its policy, style and script. All texts are markup already; `kind` is a class that gives the page its tone."""
    style, script = _assets()
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        '<meta name="referrer" content="no-referrer"><meta name="robots" content="noindex">'
        f"<title>{title}</title>"
        f'<link rel="icon" href="{_icon(colour)}"><style>{style}</style></head>'
        f'<body class="is-{kind}"><a class=skip href="#{first}">To the cause</a>'
        f"{header}<nav aria-label=Parts>{nav}</nav><main>{body}</main>{footer}<script>{script}</script></body></html>\n"
    )


def _header(book: Book, word: str) -> str:
    report = book.report
    verdict = report.verdict
    sure = "" if verdict.state is State.UNKNOWN else f"<span class=sure>{verdict.certainty.value}</span>"
    lines = [f"<p class=state><span class=word>{word}</span>{sure}</p>", f"<h1>{esc(verdict.summary, MAX_HEAD)}</h1>"]
    roots = [f.id for f in report.findings if f.root]
    command = verdict.next or (f"rayrl-debug explain {roots[0]}" if roots else "rayrl-debug snapshot -o hang --samples 5")
    lines.append(f"<p class=next><span>next:</span> <code id=next>{esc(command)}</code><button data-copy=next hidden>copy</button></p>")
    lines.append(f"<p class=meta>{' · '.join(_meta(report))}</p>")
    if report.symptoms:
        lines.append(f"<p class=meta>symptoms of a hang: {esc(tell_symptoms(report.symptoms))}</p>")
    return f"<header>{''.join(lines)}</header>"


def _meta(report: Report) -> list[str]:
    answered = [n for n in report.nodes if n.answered]
    parts = []
    if report.taken_time_s is not None:
        parts.append(_time(report.taken_time_s))
    if report.nodes:
        silent = len(report.nodes) - len(answered)
        parts.append(count(len(answered), "node") + (f" <em>and {silent:,} silent</em>" if silent else ""))
    parts.append(count(len(report.processes), "process") + " of the job")
    gpus = [n.gpus for n in answered if n.gpus is not None]
    parts.append(count(sum(gpus), "GPU") if gpus else "GPUs not seen")
    if report.gaps:
        parts.append(f'<a href="#gaps">{count(len(report.gaps), "gap")}</a>')
    return parts


def _time(value: float) -> str:
    """Time in UTC; the script shows it in the reader's zone as well. A time that no calendar holds stays a number."""
    try:
        moment = datetime.fromtimestamp(value, tz=timezone.utc)
    except (ValueError, OverflowError, OSError):
        return esc(value)
    return f'<time datetime="{moment:%Y-%m-%dT%H:%M:%SZ}">{moment:%Y-%m-%d %H:%M:%S} UTC</time>'


def footer(tool_version: str, schema: str) -> str:
    """The last line of a page."""
    version = esc(f"rayrl-debug {tool_version}".strip(), 80)
    return f"<footer>{version} · {esc(schema, 80)} · this page loads nothing and sends nothing</footer>"


def _icon(colour: str) -> str:
    circle = f"%3Ccircle cx='4' cy='4' r='4' fill='{colour}'/%3E"
    return f"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'%3E{circle}%3C/svg%3E"


@cache
def _assets() -> tuple[str, str]:
    """Style and script. A column's share of the width is a class, because the policy allows no inline style."""
    here = files("ray_rl_debug.render.html")
    weights = "".join(f".w{i}{{flex-grow:{i}}}" for i in range(1, icicle.WEIGHTS + 1))
    return (here / "style.css").read_text("utf-8") + weights, (here / "script.js").read_text("utf-8")


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
