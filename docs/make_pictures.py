"""The pictures of the documents, made from the demo: ``python docs/make_pictures.py [FOLDER]``.

Starts the demo's job, takes a snapshot of its hang, and writes beside this file ``report.png`` (the page in a headless Chromium) and ``timeline.svg``
(drawn from the trace, as Perfetto shows it). With FOLDER, what ``snapshot -o FOLDER`` wrote earlier is drawn instead.
Needs playwright, and a Chromium that is installed or playwright's own; without them only the timeline is drawn.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from cases.store import neutral  # noqa: E402 names that belong to no machine, as in the recorded cases

from ray_rl_debug.diagnosis.diagnose import diagnose  # noqa: E402
from ray_rl_debug.imports.folder import load  # noqa: E402
from ray_rl_debug.render import html  # noqa: E402

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PAGE = {"width": 1180, "height": 1010}
WIDTH, LABELS, ROW, HEAD, FOOT = 1180, 130, 22, 10, 42
LOOK = 'role="img" font-family="system-ui, sans-serif" font-size="11"'
BEFORE_S, AFTER_S = 0.15, 1.6
"""What is drawn before the first step and after the beginning of the hang; the hang itself is cut there."""
CHAR = 6.2
"""Width of a letter."""
COLOURS = {"rollout": "#4c8bbf", "reward": "#d98b2b", "update": "#5a9e6f", "init": "#8f7fb8", "step": "#57606a", "verdict": "#c8403c"}
CULPRIT, VICTIM, OTHER = "#c8403c", "#a56f6c", "#7d8590"


class Slice(NamedTuple):
    """One slice of the trace; times in seconds, `end_s` None while it is open."""

    begin_s: float
    end_s: float | None
    name: str
    colour: str


class Lane(NamedTuple):
    """One row."""

    label: str
    slices: list[Slice]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="rrd-", ignore_cleanup_errors=True) as scratch:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch, "hang")
        if len(sys.argv) == 1:
            hang(folder, scratch)
        (HERE / "timeline.svg").write_text(draw(*read_trace(folder, Path(scratch, "run.json"))), encoding="utf-8")
        page = Path(scratch, "report.html")
        snapshot = load((folder / "snapshot.json.gz",)).snapshot
        assert snapshot is not None
        snapshot = neutral(snapshot, {str(HERE.parent): "/srv/job"})
        page.write_text(html.render(diagnose(snapshot), snapshot), encoding="utf-8")
        photograph(page, HERE / "report.png")


def hang(folder: Path, scratch: str) -> None:
    """Start the demo's job, and keep in `folder` what a snapshot of its hang writes."""
    ours = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    job = subprocess.Popen(
        [sys.executable, "-m", "ray_rl_debug.demo.demo_job", scratch],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**ours, "RAY_TMPDIR": scratch},
        text=True,
    )
    with job:
        assert job.stdout is not None
        assert job.stdin is not None
        line = next((text for text in job.stdout if text.startswith("{")), None)
        if line is None:
            sys.exit("error: the demo's job did not reach its hang")
        look = [sys.executable, "-m", "ray_rl_debug", "snapshot", "--address", json.loads(line)["address"], "-o", str(folder)]
        subprocess.run(look, env=ours, check=False, stdout=subprocess.DEVNULL)
        job.stdin.close()


def photograph(page: Path, picture: Path) -> None:
    """The first screen of a page, as a reader sees it."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sys.exit("no picture of the page: pip install playwright")
    installed = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        window = browser.new_page(viewport=PAGE, color_scheme="light")
        window.goto(page.as_uri())
        window.screenshot(path=str(picture))
        browser.close()


def read_trace(folder: Path, trace: Path) -> tuple[list[Lane], float]:
    """Lanes of tasks and states, steps and verdict first; and when the snapshot was taken."""
    command = [sys.executable, "-m", "ray_rl_debug", "timeline", str(folder), "--format", "chrome", "-o", str(trace), "-q"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    events: list[dict[str, Any]] = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    owners = {e["pid"]: e["args"]["name"].rsplit(" / ", 1)[-1] for e in events if e["name"] == "process_name"}
    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    lanes: dict[tuple[str, str], list[Slice]] = {}
    taken_s = 0.0
    for event in events:
        key = (owners[event["pid"]], tracks.get((event["pid"], event["tid"]), ""))
        begin_s = event.get("ts", 0) / 1e6
        if event["ph"] in "XB" and key[1] in ("steps", "verdict", "tasks", "state"):
            end_s = begin_s + event["dur"] / 1e6 if event["ph"] == "X" else None
            lanes.setdefault(key, []).append(Slice(begin_s, end_s, re.sub(r" \([\w.-]+ pid \d+\)", "", event["name"]), colour(event)))
        elif key[1] == "snapshots":
            taken_s = begin_s
    order = {"steps": 0, "verdict": 1}
    rank = {name: n for n, name in enumerate(sorted({o for o, _ in lanes}, key=lambda o: (o != "task_runner", not o[-1].isdigit(), o)))}
    ordered = sorted(lanes.items(), key=lambda lane: (order.get(lane[0][1], 2), rank[lane[0][0]], lane[0][1] == "state"))
    return [Lane(track if track in order else owner if track == "tasks" else "", slices) for (owner, track), slices in ordered], taken_s


def colour(event: dict[str, Any]) -> str:
    if event.get("cat") == "hang":
        return CULPRIT if event["name"].startswith("CULPRIT") else VICTIM
    return COLOURS.get(event.get("cat", ""), OTHER)


def draw(lanes: Sequence[Lane], taken_s: float) -> str:
    """The steps and the beginning of the hang, one row for each lane."""
    hang_s = min(s.begin_s for lane in lanes for s in lane.slices if s.colour in (CULPRIT, VICTIM))
    first_s = min(s.begin_s for lane in lanes if lane.label == "steps" for s in lane.slices) - BEFORE_S
    last_s = hang_s + AFTER_S
    scale = (WIDTH - LABELS - 8) / (last_s - first_s)
    height = HEAD + ROW * len(lanes) + FOOT

    def x(at_s: float) -> float:
        return LABELS + (min(max(at_s, first_s), last_s) - first_s) * scale

    parts = [
        # without a size of its own a table of a README makes it a few pixels wide
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" {LOOK}>',
        "<title>The timeline of the demo: three steps, then the hang as an open slice</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    parts += ruler(first_s, last_s, x, height)
    for number, lane in enumerate(lanes):
        y = HEAD + ROW * number
        if lane.label:
            parts.append(f'<path d="M0 {y - 1.5} H{WIDTH}" stroke="#e6e8eb"/><text x="8" y="{y + 14}" font-weight="600">{escape(lane.label)}</text>')
        for one in lane.slices:
            if one.end_s is None or (one.end_s > first_s and one.begin_s < last_s):
                parts += bar(one, x(one.begin_s), x(one.end_s) if one.end_s is not None else None, y)
    later = f"open slices had not ended when the snapshot was taken, {taken_s - hang_s:.0f} s after the hang began"
    parts.append(f'<text x="{WIDTH - 8}" y="{height - 10}" text-anchor="end" fill="#57606a">{later}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def ruler(first_s: float, last_s: float, x: Any, height: int) -> Iterator[str]:
    """Half seconds since the first step, and what follows on the right."""
    for half in range(int(2 * (last_s - first_s - BEFORE_S)) + 1):
        at = x(first_s + BEFORE_S + half / 2)
        yield f'<path d="M{at:.1f} 0 V{height - FOOT}" stroke="#eef0f2"/>'
        yield f'<text x="{at:.1f}" y="{height - 28}" text-anchor="middle" fill="#57606a">{half / 2:g} s</text>'


def bar(one: Slice, left: float, right: float | None, y: int) -> Iterator[str]:
    """A slice with its name as far as it fits; an open one ends in a point."""
    end = WIDTH - 8 if right is None else max(right, left + 1.5)
    tip = f"L{end} {y + 9} L{end - 9} {y + 18}" if right is None else f"L{end:.1f} {y + 18}"
    corner = end - 9 if right is None else end
    yield f'<path d="M{left:.1f} {y} L{corner:.1f} {y} {tip} L{left:.1f} {y + 18} Z" fill="{one.colour}"/>'
    room = int((corner - left - 8) / CHAR)
    if room >= 4:
        text = one.name if len(one.name) <= room else one.name[: room - 1] + "…"
        yield f'<text x="{left + 4:.1f}" y="{y + 13}" fill="#ffffff">{escape(text)}</text>'


if __name__ == "__main__":
    main()
