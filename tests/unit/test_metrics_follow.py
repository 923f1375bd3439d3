"""A run that is followed: lines while it grows, findings when they appear, the engine's numbers beside them."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ray_rl_debug.commands.metrics_follow import Following
from ray_rl_debug.metric_sources.engine import EngineNumbers, EngineReader, parse
from ray_rl_debug.metric_sources.follow import Follower, line_of
from ray_rl_debug.metric_sources.load import load
from ray_rl_debug.metrics.judge import judge
from ray_rl_debug.metrics.model import MetricsReport, Run
from ray_rl_debug.metrics.thresholds import read_thresholds
from ray_rl_debug.model.errors import UsageError
from ray_rl_debug.timeline.layout import Layout

ENGINES = Path(__file__).parent.parent / "data" / "engines"


def rows(first: int, last: int, **values: float) -> str:
    return "".join(json.dumps({"step": s, "data": {"actor/pg_clipfrac": 0.1, **values}}) + "\n" for s in range(first, last + 1))


def test_a_source_is_read_again_when_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(rows(1, 2))
    follower = Follower([tmp_path])
    assert [follower.has_changed(), follower.has_changed()] == [True, False]
    with path.open("a") as f:
        f.write(rows(3, 3))
    assert follower.has_changed()
    path.unlink()
    assert follower.has_changed()


def test_findings_are_told_once_and_so_is_their_end(tmp_path: Path) -> None:
    pytest.importorskip("scipy", reason="trends need scipy: pip install 'ray-rl-debug[metrics]'")
    path, said = tmp_path / "a.jsonl", []
    limits = read_thresholds(())
    following = Following(lambda: load([path], {}), lambda run: judge(run, limits), {}, None)
    text = rows(1, 20)
    for more in ("", rows(21, 30, **{"actor/pg_clipfrac": 0.6}), rows(31, 35, **{"actor/pg_clipfrac": 0.6}), "\n"):
        text += more
        path.write_text(text)
        following.look(said.append, changed=True)
    assert [line.split(" (")[0].strip() for line in said] == ["step 20", "step 30", "RRD713 too many tokens clipped", "step 35"]
    path.write_text(rows(1, 40))
    following.look(said.append, changed=True)
    assert said[-2:] == ["step 40", "  RRD713 actor/pg_clipfrac is good again"]


def test_a_file_that_cannot_be_read_now_is_told_and_tried_again(tmp_path: Path) -> None:
    said: list[str] = []
    following = Following(lambda: load([tmp_path / "a.csv"], {}), lambda run: judge(run, read_thresholds(())), {}, None)
    following.look(said.append, changed=True)
    assert said[0].startswith("not read: ")
    (tmp_path / "a.csv").write_text("step,x\n1,2\n")
    following.look(said.append, changed=True)
    assert said[-1] == "step 1"


def test_the_line_of_a_step() -> None:
    run = load([Path(__file__).parent.parent / "data" / "metrics" / "verl.jsonl"], {})
    assert line_of(run, {}).startswith("step 3  reward 0.125  grad_norm 0.4043  entropy 5.75")


@pytest.fixture
def server() -> object:
    """A server with the recorded numbers of a vLLM, 500 tokens further at each look."""
    text = (ENGINES / "vllm_busy_tp1.txt").read_text()
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = text.replace("} 10613.0", f"}} {10113.0 + 500 * len(asked)}").encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{serving.server_port}"
    serving.shutdown()
    thread.join()
    serving.server_close()


def test_the_numbers_of_an_engine(server: str) -> None:
    times = iter((100.0, 102.0))
    import time

    begun = time.monotonic()
    reader = EngineReader(server, clock=lambda: begun + next(times) - 100, wall=lambda: 5.0)
    first, second = reader.read(step=7), reader.read(step=8)
    assert (first.running, first.tokens_per_s, first.step) == (2, None, 7)
    assert (second.tokens_per_s, second.preemptions) == (250, 0)
    assert second.text() == "engine: 2 running, 0 waiting, cache 1%, 250 tokens/s"


def test_what_numbers_mean() -> None:
    full = EngineNumbers(time_s=0, running=4, waiting=13, kv_usage=1.0, tokens_per_s=300, preemptions=7)
    assert full.text().endswith("7 preemptions (its cache is full: requests wait for it)")
    assert EngineNumbers(time_s=0, running=0, waiting=0, tokens_per_s=0).text().endswith("(idle: the time goes elsewhere)")
    assert EngineNumbers(time_s=0, running=3, waiting=0, tokens_per_s=0).text().endswith("(requests wait, and no token comes out)")


def test_an_engine_that_is_not_there_costs_nothing() -> None:
    assert EngineReader("http://127.0.0.1:9").read().text() == "engine: connection refused"


def test_an_engine_that_ends_is_told_with_the_time_of_its_last_answer(tmp_path: Path) -> None:
    """A small engine of its own, which is shut down between two looks."""
    text = (ENGINES / "vllm_busy_tp1.txt").read_bytes()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *arguments: object) -> None:
            pass

    import time

    begun, passed = time.monotonic(), iter((0.0, 12.0, 20.0))
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.02,))
        thread.start()
        reader = EngineReader(f"http://127.0.0.1:{serving.server_port}", clock=lambda: begun + next(passed))
        assert reader.read().running == 2
        serving.shutdown()
        thread.join()
    gone = reader.read(step=5)
    assert (gone.running, gone.step, gone.silent_s) == (None, 5, 12.0)
    assert gone.text() == "engine: connection refused (it answered until 12 s ago: it has ended, or does not serve now)"
    assert reader.read().silent_s == 20.0


@pytest.mark.parametrize("url", ["https://x:1", "ftp://x", "http://", "http://x:port", "file:///etc/passwd"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(UsageError):
        parse(url)


def test_the_engine_is_asked_while_a_long_judgement_goes_on(tmp_path: Path, server: str) -> None:
    """One judgement that waits until the engine has been asked three times beside it."""
    (tmp_path / "a.jsonl").write_text(rows(1, 2))
    asked = threading.Semaphore(0)
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        if "engine:" in text:
            asked.release()

    def judged(run: Run) -> MetricsReport:
        assert all(asked.acquire(timeout=20) for _ in range(3))
        return judge(run, read_thresholds(()))

    following = Following(lambda: load([tmp_path / "a.jsonl"], {}), judged, {}, EngineReader(server))
    with following.asking(say, 0.05):
        following.look(say, changed=True)
    assert len(following.numbers) >= 4 and following.numbers[-1].step == 2
    assert "engine:" in said[0] and "engine:" in said[-1]


@pytest.mark.parametrize("ends", ["run", "interrupt"])
def test_the_command_ends_with_the_run_or_when_it_is_asked_to(ends: str, tmp_path: Path, server: str) -> None:
    pytest.importorskip("scipy", reason="trends need scipy: pip install 'ray-rl-debug[metrics]'")
    log = tmp_path / "train.log"
    log.write_text("".join(f"step:{s} - actor/grad_norm:{1 + 0.01 * math.sin(s)}\n" for s in range(1, 31)))
    command = [
        sys.executable,
        "-m",
        "ray_rl_debug",
        "metrics",
        str(log),
        "--follow",
        "--interval",
        "0.5",
        "--engine",
        server,
        "-o",
        str(tmp_path / "o"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = [process.stdout.readline(), process.stdout.readline()]
        assert sorted("engine: 2 running" in line for line in first) == [False, True]
        assert sorted("step 30" in line for line in first) == [False, True]
        with log.open("a") as f:
            f.write("step:31 - actor/grad_norm:1.0\n" + ("'Final validation metrics: None'\n" if ends == "run" else ""))
        for line in process.stdout:
            if "step 31" in line:
                break
        if ends == "interrupt":
            process.send_signal(signal.SIGINT)
        rest, trouble = process.communicate(timeout=60)
        assert process.returncode == (0 if ends == "run" else 130), trouble
        assert "HEALTHY" in rest
    assert json.loads((tmp_path / "o" / "metrics.json").read_text())["verdict"]["state"] == "healthy"
    assert json.loads((tmp_path / "o" / "engine.jsonl").read_text().splitlines()[-1])["step"] == 31


def test_the_numbers_become_counters_of_the_timeline(tmp_path: Path) -> None:
    import msgspec

    from ray_rl_debug.timeline.load import load as load_timeline

    numbers = (
        EngineNumbers(time_s=1_790_000_000.0, reason="connection refused"),
        EngineNumbers(time_s=1_790_000_010.0, step=7, running=2, waiting=3, kv_usage=0.5, tokens_per_s=250.0),
    )
    (tmp_path / "engine.jsonl").write_bytes(b"".join(msgspec.json.encode(n) + b"\n" for n in numbers) + b'{"foreign": 1}\n')
    (source,) = load_timeline([tmp_path / "engine.jsonl"]).others
    made = source(Layout({}, {}, {})) if callable(source) else source
    seen = {b.track.path[-1]: (b.track.unit, b.items[0].at_ns, b.items[0].value) for b in made.batches()}  # type: ignore[union-attr]
    at = 1_790_000_010 * 10**9
    assert seen == {
        "engine: requests running": ("requests", at, 2.0),
        "engine: requests waiting": ("requests", at, 3.0),
        "engine: cache used": ("%", at, 50.0),
        "engine: tokens generated": ("tokens/s", at, 250.0),
        "engine: step of the trainer": ("step", at, 7.0),
    }
    assert [g.reason for g in made.gaps] == ["1 lines hold no time and were left out"]
