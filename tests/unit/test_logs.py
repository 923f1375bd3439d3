import gzip
import os
import time

import pytest

from ray_rl_debug.collect.logs import MAX_LINES, collect_log_lines, read_log_paths
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Process
from ray_rl_debug.privacy.redact import redact

HANGING_START = (
    "[2026-11-21 00:11:06,234 E 2909 2909] (raylet) worker_pool.cc:660: Some workers of the worker process(3030) have not registered within "
    "the timeout. The process is still alive, probably it's hanging during start."
)
WORKER = "a" * 56


@pytest.fixture
def session(tmp_path):
    (tmp_path / "logs").mkdir()
    return tmp_path


def write(session, name, text):
    (session / "logs" / name).write_text(text)


def process(pid):
    return Process(pid=pid, title="ray::Trainer.step")


def lines_at_rest(processes, session, **options):
    """The lines, on a clock that stands still: a busy machine, or signatures that are compiled first, cannot use up the time for a file."""
    return collect_log_lines(processes, session, file_s=600.0, clock=lambda: 0.0, **options)


def test_lines_of_each_process_and_of_the_raylet(session):
    write(session, "raylet.err", f"fine\n{HANGING_START}\n")
    write(session, f"worker-{WORKER}-01000000-812.err", "step 1\nRuntimeError: CUDA error: an illegal memory access was encountered\n")
    write(session, f"python-core-worker-{WORKER}_812.log", "nothing\n")
    write(session, f"worker-{WORKER}-01000000-998.err", "KeyError: 'responses'\n")
    write(session, f"worker-{WORKER}-01000000-999.err", "KeyError: 'responses'\n")
    (session / "proc" / "998").mkdir(parents=True)  # alive, of another job
    found, missing = lines_at_rest([process(812), process(813)], session, proc=session / "proc")
    assert missing == ()
    assert set(found) == {None, 812}
    raylet, dead = found[None]
    assert dead.file.endswith("-999.err")
    assert (raylet.line_number, raylet.signature, raylet.text) == (2, "RRD608", HANGING_START)
    assert raylet.time_s == time.mktime((2026, 11, 21, 0, 11, 6, 0, 0, -1)) + 0.234
    (kernel,) = found[812]
    assert kernel.line_number == 2
    assert kernel.time_s is None


def test_only_the_end_of_a_long_log_is_read_but_lines_are_numbered_from_its_start(session):
    write(session, "raylet.out", "KeyError: 'responses'\n" + "step\n" * 200_000 + "KeyError: 'prompts'\n")
    found, _ = lines_at_rest([], session)
    assert [(line.line_number, line.text) for line in found[None]] == [(200_002, "KeyError: 'prompts'")]


def test_a_flood_of_one_line_does_not_push_out_others(session):
    write(session, "raylet.err", "received 0 items of ancdata\n" + f"{HANGING_START}\n" * 500 + "received 0 items of ancdata\n")
    (lines,) = lines_at_rest([], session)[0].values()
    assert [line.line_number for line in lines] == [1, 2, 3, 499, 500, 501, 502]


def test_a_match_far_behind_in_a_long_line_is_shown(session):
    metrics = " - ".join(f"actor/metric_{i}:0.5" for i in range(100))
    write(session, "job-driver-raysubmit_1.log", f"(TaskRunner pid=7) step:1 - {metrics} - actor/kl_loss:nan - actor/lr:0.1\n")
    (line,) = lines_at_rest([], session)[0][None]
    assert line.text.startswith("(TaskRunner pid=7) step:1 - actor/metric_0:0.5") and "actor/kl_loss:nan" in line.text


def test_few_lines_per_file(session):
    from ray_rl_debug.signatures import load

    write(session, "raylet.err", "".join(f"{s.matches[0]}\n" for s in load()))
    (lines,) = lines_at_rest([], session)[0].values()
    assert len(lines) == MAX_LINES


def test_no_session_folder_is_a_gap(tmp_path):
    found, (gap,) = lines_at_rest([process(1)], tmp_path / "gone")
    assert found == {}
    assert (gap.id, gap.what) == (gaps.LOGS_UNREAD, "Ray's session logs")
    assert lines_at_rest([], None) == ({}, ())


def test_too_many_files_and_no_time_are_gaps(session):
    for pid in range(1, 6):
        write(session, f"worker-{WORKER}-01000000-{pid}.err", "KeyError: 'responses'\n")
    found, (gap,) = lines_at_rest([process(p) for p in range(1, 6)], session, max_files=2)
    assert len(found) == 2 and "3 files beyond the first 2" in gap.reason
    found, (gap,) = lines_at_rest([process(1)], session, deadline_s=-1)
    assert found == {} and "not reached" in gap.reason


def test_a_fifo_in_place_of_a_log_does_not_block(session):
    os.mkfifo(session / "logs" / "raylet.err")
    started = time.monotonic()
    found, _ = collect_log_lines([], session)
    assert found == {} and time.monotonic() - started < 2


def test_given_files_folders_and_gzip(tmp_path):
    (tmp_path / "a.log").write_text("KeyError: 'responses'\n")
    (tmp_path / "deep").mkdir()
    with gzip.open(tmp_path / "deep" / "b.log.gz", "wt") as f:
        f.write("ok\n" * 500_000 + "received 0 items of ancdata")
    (tmp_path / "core.bin").write_bytes(b"\x00" * 5000)
    lines, missing = read_log_paths([tmp_path])
    assert [(line.file, line.line_number) for line in lines] == [(f"{tmp_path}/a.log", 1), (f"{tmp_path}/deep/b.log.gz", 500_001)]
    assert missing == ()


def test_given_files_that_cannot_be_used_are_gaps(tmp_path):
    (tmp_path / "core").write_bytes(b"\x00" * 5000)
    cut = gzip.compress(os.urandom(100_000))[:5000]
    (tmp_path / "cut.gz").write_bytes(cut)
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8b" + b"junk" * 10)
    lines, missing = read_log_paths([tmp_path / name for name in ("core", "cut.gz", "bad.gz", "none")])
    assert lines == ()
    assert [gap.reason.split(":")[0] for gap in missing] == ["core", "cut.gz", "bad.gz", "none"]
    assert {gap.id for gap in missing} == {gaps.FILE_UNREAD}


def test_a_bound_on_a_given_file_is_said(tmp_path):
    (tmp_path / "big.log").write_text("ok\n" * 800_000)
    _, (gap,) = read_log_paths([tmp_path / "big.log"], max_bytes=1 << 20)
    assert gap.id == gaps.TRUNCATED


def test_a_given_log_without_line_ends(tmp_path):
    (tmp_path / "one.log").write_text("x" * 9_000_000 + " received 0 items of ancdata " + "y" * 100)
    ((line,), missing) = read_log_paths([tmp_path / "one.log"])
    assert line.signature and missing == ()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("OSError: token=abc123def failed", "OSError: token=*** failed"),
        ("HF_TOKEN: hf_abcdefghij12345", "HF_TOKEN: ***"),
        ("GET https://me:hunter2@proxy.example/x failed", "GET https://***@proxy.example/x failed"),
        ("Authorization: Bearer abc.def.ghi123", "Authorization: ***"),
        ("wandb: 0123456789abcdef0123456789abcdef0123456", "wandb: ***"),
        ("api_key='sk-abcdefghijklmnop' rejected", "api_key='***' rejected"),
        ("InvalidAuthToken: Authentication token is missing", "InvalidAuthToken: Authentication token is missing"),
        ("max_tokens=1024 token usage: 0.51", "max_tokens=1024 token usage: 0.51"),
        (f"worker_id={'0a' * 28} died", f"worker_id={'0a' * 28} died"),
        ("/tmp/rc/session_2026-11-21_00-02-50_368596_46/sockets", "/tmp/rc/session_2026-11-21_00-02-50_368596_46/sockets"),
        ("\x1b[31mbad\x1b[0m\x07\tthing\u202e", "bad\\x07 thing\\x202e"),
    ],
)
def test_redaction(line, shown):
    assert redact(line) == shown


def test_long_lines_are_cut():
    assert len(redact("word " * 1000)) == 400
