"""Telling people: the command, the webhook that fails first, Slack's form; and the lines of the live view."""

from __future__ import annotations

import http.server
import io
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ray_rl_debug.model.report import Cause, Certainty, Finding, Report, State, Verdict, Who
from ray_rl_debug.watch.decide import Progress
from ray_rl_debug.watch.learn import Gaps, Limits
from ray_rl_debug.watch.live import Live, RoleLine, table
from ray_rl_debug.watch.notify import Notifier, message, slack_message

WHO = Who(label="actor/3", node="n1", pid=7)
BEST = Finding(
    id="RRD502", name="blocked input or output", cause=Cause.BLOCKED_IO, certainty=Certainty.LIKELY, summary="s", root=True,
    who=(WHO,), victims=(Who(label="actor/0"), Who(label="actor/1")), remedy=("look at <the tool>",),
)  # fmt: skip
REPORT = Report(verdict=Verdict(state=State.HANG, summary="actor/3 waits & waits", certainty=Certainty.LIKELY), findings=(BEST,))


class Hook:
    """A web server that gives these answers in turn, then 200."""

    def __init__(self, *answers: int) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.gets: list[str] = []
        left = list(answers)
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                code = left.pop(0) if left else 200
                if code == 200:
                    hook.bodies.append(body)
                self.send_response(code)
                if code in range(300, 400):
                    self.send_header("Location", f"{hook.url}/elsewhere")
                self.end_headers()

            def do_GET(self) -> None:
                hook.gets.append(self.path)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def heard() -> list[str]:
    return []


@pytest.fixture
def telling(heard: list[str]) -> Notifier:
    return Notifier(heard=heard.append, sleep=lambda seconds: None)


@pytest.fixture
def hooks() -> Iterator[list[Hook]]:
    made: list[Hook] = []
    yield made
    for hook in made:
        hook.server.shutdown()
        hook.server.server_close()


def test_webhook_is_tried_again(telling: Notifier, heard: list[str], hooks: list[Hook]) -> None:
    hooks.append(Hook(503, 429))
    telling.post(hooks[0].url, lambda: message(REPORT, kind="hang", job_id="01000000", age_s=12.34, folder="/out/x"))
    telling.finish(10)
    assert heard == []
    (body,) = hooks[0].bodies
    assert body["schema"] == "rayrl-debug/event/1"
    assert (body["event"], body["state"], body["rule"], body["cause"]) == ("hang", "hang", "RRD502", "blocked-io")
    assert body["who"] == [{"label": "actor/3", "node": "n1", "pid": 7}]
    assert (body["victims"], body["stalled_s"], body["folder"]) == (2, 12.3, "/out/x")


def test_webhook_that_refuses_is_not_asked_again(telling: Notifier, heard: list[str], hooks: list[Hook]) -> None:
    hooks.append(Hook(404))
    telling.post(hooks[0].url, dict)
    telling.finish(10)
    assert heard == ["the webhook did not take the message: HTTP 404"]
    assert hooks[0].bodies == []


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_webhook_that_sends_on_is_told(telling: Notifier, heard: list[str], hooks: list[Hook], code: int) -> None:
    hooks.append(Hook(code))
    telling.post(hooks[0].url, dict)
    telling.finish(10)
    assert heard == [f"the webhook did not take the message: HTTP {code}, it sends on to another address; give that one"]
    assert (hooks[0].bodies, hooks[0].gets) == ([], [])


def test_dead_webhook_is_told_and_costs_nothing(telling: Notifier, heard: list[str]) -> None:
    telling.post("http://127.0.0.1:9/hook", dict)
    telling.finish(10)
    assert len(heard) == 1
    assert "Connection refused" in heard[0]


def test_slack_form_is_escaped_and_short() -> None:
    long = Report(verdict=Verdict(state=State.HANG, summary="x" * 5000, certainty=Certainty.LIKELY), findings=(BEST,))
    for report in (REPORT, long):
        body = slack_message(report, kind="hang", job_id="01000000", age_s=12.0, folder="/out")
        assert body["blocks"][0]["text"]["type"] == "plain_text"
        assert len(body["blocks"][1]["text"]["text"]) <= 3000
        assert len(body["text"]) <= 3000
    text = slack_message(REPORT, kind="hang", job_id="01000000", age_s=12.0, folder="/out")["blocks"][1]["text"]["text"]
    assert "actor/3 waits &amp; waits" in text
    assert "look at &lt;the tool&gt;" in text
    assert "2 wait" in text


def test_command_gets_its_environment(telling: Notifier, heard: list[str], tmp_path: Path) -> None:
    telling.run(f'echo "$RAYRL_DEBUG_SUMMARY" > {tmp_path}/said', lambda: {**os.environ, "RAYRL_DEBUG_SUMMARY": "it $(hangs)"})
    telling.finish(10)
    assert (tmp_path / "said").read_text() == "it $(hangs)\n"
    assert heard == []


def test_command_that_fails_or_does_not_end_is_told(telling: Notifier, heard: list[str]) -> None:
    telling.run("exit 3", lambda: os.environ)
    telling.finish(10)
    telling.run("exec sleep 60", lambda: os.environ, timeout_s=0.2)
    telling.finish(10)
    assert heard == ["the command of --on-hang ended with 3", "the command of --on-hang was ended after 0 s"]


def lines() -> list[str]:
    progress = Progress(Limits())
    progress.learned.step = 42
    progress.learned.steps = Gaps(recent=[2.0, 3.0, 4.0], count=3)
    roles = [RoleLine(role="PolicyTrainer", ranks=4, working=1, phase="reward", age_s=11.4)]
    return list(table({"01000000": (progress, roles)}, 2, 1, "93 % of 8"))


def test_one_quiet_line_per_role() -> None:
    assert lines() == [
        "watching 1 job on 2 nodes, 1 silent; GPUs 93 % of 8",
        "job 01000000  step 42, 3.0 s a step",
        "  PolicyTrainer                   4 ranks    1 working  reward                       11 s",
    ]


def test_terminal_is_renewed_in_place_and_events_stay() -> None:
    out = io.StringIO()
    live = Live(out, is_terminal=True)
    live.show(["one", "two"], 0.0, 0.0)
    live.say("it \x1b[31mhangs", 0.0)
    live.show(["one"], 2.0, 2.0)
    text = out.getvalue()
    assert text.startswith("one\ntwo\n\x1b[2A\x1b[J")
    assert "it ?[31mhangs" in text


def test_log_gets_the_state_once_in_five_minutes() -> None:
    out = io.StringIO()
    live = Live(out, is_terminal=False)
    for now in range(0, 600, 2):
        live.show(["one"], float(now), float(now))
    assert out.getvalue() == "1970-01-01T00:00:00Z one\n1970-01-01T00:05:00Z one\n"
