"""Telling people: a command of theirs, a webhook. Both run beside the watch, bounded, and are retried; their failure is an event, no more."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.model.report import Report
from ray_rl_debug.render.phone import TEXT_CHARS, best_finding, clipped, headline, phone_text
from ray_rl_debug.watch.hooks import run_hook

HOOK_S = 600.0
"""A command of the user may copy the evidence away; then it is ended."""
POST_S = 10.0
TRIES = 5
SLACK_CHARS = 2900
"""Slack refuses longer text blocks than 3,000 characters."""


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows nobody: the message, which names people's jobs, goes to the address that was given, and a POST that is sent on loses its body."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_Stay)


class Notifier:
    """Runs what tells people in threads of its own."""

    def __init__(self, *, heard: Callable[[str], None], sleep: Callable[[float], None] = time.sleep) -> None:
        self._heard = heard
        self._sleep = sleep
        self._threads: list[threading.Thread] = []

    def run(self, command: str, environment: Callable[[], Mapping[str, str]], *, timeout_s: float = HOOK_S) -> None:
        """Start the user's command in a shell; its environment may have to be waited for."""
        self._start(lambda: self._run(command, dict(environment()), timeout_s))

    def post(self, url: str, body: Callable[[], Mapping[str, Any]]) -> None:
        """POST a JSON document, which may have to be waited for; again after 1, 2, 4 and 8 seconds when the other end fails."""
        self._start(lambda: self._post(url, json.dumps(body()).encode()))

    def finish(self, patience_s: float) -> None:
        """Wait for what is under way."""
        until = time.monotonic() + patience_s
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _start(self, work: Callable[[], None]) -> None:
        self._threads = [t for t in self._threads if t.is_alive()]
        thread = threading.Thread(target=work, daemon=True, name="tell")
        thread.start()
        self._threads.append(thread)

    def _run(self, command: str, environment: dict[str, str], timeout_s: float) -> None:
        said = run_hook(command, environment, timeout_s)
        if said is not None:
            self._heard(f"the command of --on-hang {said}")

    def _post(self, url: str, data: bytes) -> None:
        last = ""
        for number in range(TRIES):
            if number:
                self._sleep(2.0 ** (number - 1))
            request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json", "User-Agent": "rayrl-debug"}, method="POST")
            try:
                with _OPENER.open(request, timeout=POST_S):
                    return
            except urllib.error.HTTPError as e:
                last = f"HTTP {e.code}" + (", it sends on to another address; give that one" if e.code in range(300, 400) else "")
                e.close()
                if e.code < 500 and e.code not in (408, 429):
                    break
            except OSError as e:
                last = str(getattr(e, "reason", None) or e).replace(url, "its address")
            except (ValueError, http.client.HTTPException) as e:
                last = type(e).__name__  # its text holds the address, which is a secret
        self._heard(f"the webhook did not take the message: {last}")


def message(report: Report, *, kind: str, job_id: str, age_s: float, folder: str | None) -> dict[str, Any]:
    """The generic document: schema ``rayrl-debug/event/1``."""
    best, has_recovered = best_finding(report), kind == "recovered"
    return {
        "schema": "rayrl-debug/event/1",
        "event": kind,
        "job": job_id,
        "state": report.verdict.state.value,
        "certainty": report.verdict.certainty.value,
        "headline": headline(report, has_recovered=has_recovered),
        "text": phone_text(report, job_id=job_id, age_s=age_s, has_recovered=has_recovered),
        "summary": report.verdict.summary,
        "stalled_s": round(age_s, 1),
        "taken_time_s": report.taken_time_s,
        "rule": best.id if best else None,
        "cause": best.cause.value if best else None,
        "who": [{"label": w.label, "node": w.node, "pid": w.pid} for w in best.who] if best else [],
        "victims": len(best.victims) if best else 0,
        "remedy": list(best.remedy) if best else [],
        "folder": folder,
    }


def slack_message(report: Report, *, kind: str, job_id: str, age_s: float, folder: str | None) -> dict[str, Any]:
    """The form of Slack's incoming webhooks: a telephone shows `text`, the channel the blocks."""
    best, has_recovered = best_finding(report), kind == "recovered"
    job = f"Ray job {_escaped(job_id)}"
    since = f"{job} goes on" if has_recovered else f"{job}: {report.verdict.certainty.value}, no progress for {age_s:.0f} s"
    lines = [f"*{_escaped(report.verdict.summary)}*", since]
    if best is not None:
        lines.append(f"{best.id} {_escaped(best.name)}: {_escaped(', '.join(w.label for w in best.who[:8]))}; {len(best.victims)} wait")
        lines += [f"• {_escaped(r)}" for r in best.remedy[:3]]
    if folder:
        lines.append(f"`{_escaped(folder)}`")
    text = "\n".join(lines)[:SLACK_CHARS]
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": headline(report, has_recovered=has_recovered)}},
        {"type": "section", "text": {"type": "mrkdwn", "text": text}},
    ]
    return {"text": _escaped(phone_text(report, job_id=job_id, age_s=age_s, has_recovered=has_recovered)), "blocks": blocks}


def learning_message(job_id: str, finding: Judgement) -> dict[str, Any]:
    """The generic document about a metric: the run is alive, and does not learn as it should."""
    return {
        "schema": "rayrl-debug/event/1",
        "event": "learning",
        "job": job_id,
        "certainty": finding.certainty.value if finding.certainty is not None else None,
        "text": clipped(f"{finding.name}: {finding.summary}", TEXT_CHARS),
        "summary": finding.summary,
        "rule": finding.id,
        "metric": finding.metric,
        "first_step": finding.first_step,
        "remedy": list(finding.remedy),
    }


def slack_learning(job_id: str, finding: Judgement) -> dict[str, Any]:
    """The same in the form of Slack."""
    head = f"Ray job {job_id}: {finding.name}"
    text = "\n".join([f"*{_escaped(finding.summary)}*", *(f"• {_escaped(r)}" for r in finding.remedy[:3])])[:SLACK_CHARS]
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": head[:150]}},
        {"type": "section", "text": {"type": "mrkdwn", "text": text}},
    ]
    return {"text": _escaped(clipped(f"{head}: {finding.summary}", TEXT_CHARS)), "blocks": blocks}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
