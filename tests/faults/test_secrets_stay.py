"""Two hundred made-up secrets in every place where a string can leave; and innocent strings, which come out as they are."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.made_up_secrets import COUNT, make_secrets
from integration.programs import starting

from ray_rl_debug.collect.health.ray_processes import kept_environment
from ray_rl_debug.commands.cli import main
from ray_rl_debug.model import codec
from ray_rl_debug.model.snapshot import Snapshot
from ray_rl_debug.privacy.allowlist import allowed_arguments, allowed_entry_point, allowed_environment
from ray_rl_debug.privacy.kept_locals import keep_value
from ray_rl_debug.privacy.masking import mask
from ray_rl_debug.privacy.redact import made_safe, redact
from ray_rl_debug.slurm.job import Job
from ray_rl_debug.slurm.render import render

HERE = Path(__file__).parent
SECRETS = make_secrets()
start = pytest.fixture(starting)


def leaked(text: str) -> list[str]:
    """Of the secrets, those that a text holds, in whole or in a large part; names may be spelled out or cut on the way."""
    found = []
    for value, form in SECRETS:
        at = max(text.find(value[:12]), text.find(value[-12:]))
        if at >= 0:
            found.append(f"{form!r} in {text[max(0, at - 80) : at + 60]!r}")
    return found


def everything(folder: Path) -> str:
    """All that was written, unpacked."""
    files = [p for p in folder.rglob("*") if p.is_file()]
    assert files
    return "\n".join((gzip.decompress(data) if (data := p.read_bytes())[:2] == b"\x1f\x8b" else data).decode("utf-8", "replace") for p in files)


def run(*arguments: object) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-m", "ray_rl_debug", *map(str, arguments)], capture_output=True, text=True, timeout=150, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_running_program_gives_none_of_its_secrets_away(start: Any, tmp_path: Path) -> None:
    """A program carries 200 secrets in arguments, environment, folder, files, sockets, threads, tasks and children.
    Its snapshot, report, text and page hold none of them, and still name its threads, tasks and files."""
    ready, out = tmp_path / "ready", tmp_path / "out"
    env = {**os.environ, **{f"VERL_X{i}": text for i, (_, text) in enumerate(SECRETS)}, **{f"VLLM_Y{i}": text for i, (_, text) in enumerate(SECRETS)}}
    words = [word for _, text in SECRETS for word in text.split()] + [f"-p{value}" for value, _ in SECRETS]
    program = start(sys.executable, HERE / "secrets_program.py", tmp_path / "in", ready, *words, ready=ready, env=env)
    code, said = run("snapshot", "--pid", program.pid, "--samples", 1, "--once", "-o", out, "-v")
    assert code in (0, 1, 3), said
    assert leaked(said) == []
    assert leaked(everything(out)) == []
    processes = codec.read_snapshot(out / "snapshot.json.gz").nodes[0].processes
    assert len(processes) == 34
    carrier = next(p for p in processes if p.pid == program.pid)
    assert len(carrier.files or ()) > 60 and len(carrier.async_tasks or ()) >= 60 and len(carrier.threads) >= 33
    assert (carrier.cwd or "").endswith("/in/PASSWORD=***")
    assert "secrets_program.py" in carrier.title


def test_logs_give_none_of_their_secrets_away(tmp_path: Path) -> None:
    """Logs hold 200 secrets beside known errors, in their lines and in their names.
    The errors are found, and neither report nor page holds a secret."""
    logs, out = tmp_path / "logs", tmp_path / "out"
    logs.mkdir()
    for number, (_, text) in enumerate(SECRETS):
        name = text.replace("/", "|") if "://" not in text and len(text) < 100 else str(number)
        (logs / f"{name}.log").write_text(f"{text} RuntimeError: received 0 items of ancdata {text}\nOSError: {text}: received 0 items of ancdata\n")
    code, said = run("report", logs, "--json", "-o", out)
    assert code in (0, 1, 3), said
    assert leaked(said) == [] and leaked(everything(out)) == []
    assert "RRD694" in said and "received 0 items of ancdata" in said


def test_rays_tables_give_none_of_their_secrets_away() -> None:
    """Jobs, actors, workers, nodes and placement groups of Ray's tables hold secrets in entry points, names and reasons of death.
    The tables are read with none of them."""
    pytest.importorskip("ray")
    from ray.core.generated import gcs_pb2 as pb

    from ray_rl_debug.ray_state import tables

    found: list[Any] = []
    for value, text in SECRETS:
        for entry in (
            text,
            f"python train.py {text}",
            f"{text} python train.py -p{value}",
            f"bash -c '{text} python -m x {text}'",
            f"env {text} python t.py",
        ):
            found.append(tables._job(pb.JobTableData(job_id=b"\1\0\0\0", entrypoint=entry)))
        found.append(tables._worker(pb.WorkerTableData(exit_detail=f"failed: {text}")))
        actor = pb.ActorTableData(name=text, class_name="Trainer", ray_namespace=text)
        actor.death_cause.actor_died_error_context.error_message = f"The actor died: {text}"
        found.append(tables._actor(actor))
        node = pb.GcsNodeInfo(node_manager_hostname="n1")
        node.death_info.reason_message = text
        found.append(tables._node(node, None))
        found.append(tables._group(pb.PlacementGroupTableData(name=text)))
    assert len(found) == COUNT * 9
    assert leaked(codec.encode(Snapshot(taken_time_s=0.0)).decode()) == []
    assert leaked("\n".join(codec.encode(made_safe(one)).decode() for one in found)) == []
    assert (
        tables._job(pb.JobTableData(entrypoint="python -m verl.trainer.main_ppo --role actor")).entrypoint
        == "python -m verl.trainer.main_ppo --role actor"
    )


def test_dumps_collected_by_hand_give_none_of_their_secrets_away(tmp_path: Path) -> None:
    """What py-spy printed holds whole command lines, with 200 secrets in them, and names of threads.
    The report of these files is made and holds none."""
    dumps, out = tmp_path / "dumps", tmp_path / "out"
    dumps.mkdir()
    for number, (value, text) in enumerate(SECRETS):
        shapes = (f"python train.py {text} -p{value} --x {value}", text, f"X={value} python train.py", f"curl {text}")
        stack = f'Thread {number + 10} (idle): "{text}"\n    wait (threading.py:320)\n'
        dump = f"Process {number + 10}: {shapes[number % 4]}\nPython v3.11.7 (/usr/bin/python)\n\n{stack}"
        (dumps / f"rank_{number}.txt").write_text(dump)
    code, said = run("report", dumps, "-v", "-o", out)
    assert code in (0, 1, 3), said
    assert leaked(said) == [] and leaked(everything(out)) == []
    assert len(codec.read_snapshot(out / "snapshot.json.gz").nodes[0].processes) > COUNT * 0.9


@pytest.mark.parametrize("where", ["mask", "redact", "argument", "entry point", "environment", "local"])
def test_each_position_alone(where: str) -> None:
    """Each of 200 secrets comes to each door alone, also in the middle of other text.
    No door lets one through."""
    doors = {
        "mask": lambda value, text: mask(f"x {text} y") + mask(text),
        "redact": lambda value, text: redact(f"x {text} y") + redact(f"E   ValueError: {text}"),
        "argument": lambda value, text: " ".join(
            allowed_arguments(words)
            for words in (["python", *text.split()], [text], ["curl", text], [text, "x.py"], ["x", f"-p{value}", f"{text}/a.py"])
        ),
        "entry point": lambda value, text: f"{allowed_entry_point(text)} {allowed_entry_point(f'X={value} python a.py --y {value} -p{value}')}",
        "environment": lambda value, text: str(
            (
                allowed_environment([("NCCL_X", text), ("VLLM_HOST", text), ("MASTER_ADDR", text), ("WG_PREFIX", f"u:{value}@h")]),
                made_safe(kept_environment([("http_proxy", text), ("https_proxy", text), ("no_proxy", text), ("RAY_ADDRESS", text)])),
            )
        ),
        "local": lambda value, text: mask(str(keep_value("torch/distributed/c.py", False, "f", "hostname", text))),
    }
    assert leaked("\n".join(doors[where](value, text) for value, text in SECRETS)) == []


def test_errors_and_progress_give_none_away(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The command line itself holds secrets in names of files and addresses, and every one of them is an error.
    What is said about it holds none, as text and as JSON."""
    for value, text in SECRETS[:33]:
        main(["report", str(tmp_path / text)])
        main(["report", str(tmp_path / text), "--json"])
        main(["snapshot", "--address", text.split()[-1], "--pid", "1"])
        main(["slurm", "render", "ray", "--env", f"1={text}", "--", "x"])
        main(["watch", "--slack", f"ftp://{value}"])
    said = capsys.readouterr()
    assert leaked(said.out + said.err) == []
    assert "a webhook begins with http" in said.err


def test_webhooks_come_from_files_and_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The address of a webhook is a secret, and command lines are read by everybody on the node.
    It comes from a file or a variable as well, a visible one is warned of, and a job script refuses to hold it."""
    taken: list[Any] = []
    monkeypatch.setattr("ray_rl_debug.watch.keeper.keep_alive", lambda: None)
    monkeypatch.setattr("ray_rl_debug.commands.watch._run", lambda address, options, *a, **k: taken.append(options) or 0)
    file = tmp_path / "slack"
    file.write_text("# ours\nhttps://hooks.slack.com/services/T/B/one\n\nhttps://hooks.slack.com/services/T/B/two\n")
    assert main(["watch", "--slack-file", str(file), "--webhook-file", str(file)]) == 0
    monkeypatch.setenv("RAYRL_DEBUG_SLACK", "https://hooks.slack.com/services/T/B/three")
    monkeypatch.setenv("RAYRL_DEBUG_WEBHOOK", "https://a/1 https://a/2")
    assert main(["watch"]) == 0
    assert capsys.readouterr().err == ""
    assert [u[-3:] for u in (*taken[0].slack, *taken[0].webhooks)] == ["one", "two", "one", "two"]
    assert (taken[1].slack, taken[1].webhooks) == (("https://hooks.slack.com/services/T/B/three",), ("https://a/1", "https://a/2"))
    assert main(["watch", "--slack", "https://hooks.slack.com/services/T/B/four"]) == 0
    assert "--slack-file" in capsys.readouterr().err
    assert main(["watch", "--slack-file", str(tmp_path / "absent")]) == 2
    for wrong in ({"watch_args": ("--slack", "https://x")}, {"watch_args": ("--webhook=https://x",)}, {"env": ("RAYRL_DEBUG_SLACK=https://x",)}):
        with pytest.raises(Exception, match="would hold the address of a webhook"):
            render(Job(framework="ray", command=("x",), **wrong))
    assert "--slack-file" in render(Job(framework="ray", command=("x",), watch_args=("--slack-file", "/home/me/slack")))


def cases() -> Iterator[Path]:
    yield from sorted((HERE.parent / "cases").glob("*/*.json.gz"))


def test_innocent_strings_come_out_as_they_are() -> None:
    """All recorded snapshots hold names of functions, paths, titles, ids and lines of logs that the analysis needs.
    Not one of these strings is changed."""
    changed = {}
    count = 0
    for path in cases():
        snapshot = codec.read_snapshot(path)
        count += 1
        if (safe := made_safe(snapshot)) is not snapshot:
            changed[path.parent.name] = [
                pair
                for pair in zip(strings(json.loads(codec.encode(snapshot))), strings(json.loads(codec.encode(safe))), strict=True)
                if pair[0] != pair[1]
            ][:3]
    assert count > 50 and changed == {}


def strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [s for k, v in value.items() for s in (k, *strings(v))]
    if isinstance(value, list):
        return [s for v in value for s in strings(v)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize(
    "text",
    [
        "/usr/lib/python3/site-packages/transformers/tokenization_utils_base.py",
        "get_token.<locals>.refresh_secret_key",
        "PasswordHasher.__init__",
        "ray::WorkerDict.actor_rollout_compute_log_prob",
        "max_tokens=1024 token usage: 0.51 tokens/s: 1234.5k",
        "tokenizer=/models/Qwen2.5-7B tokenizer_path=/models/x token_level_rewards=mean",
        "InvalidAuthToken: Authentication token is missing",
        "the cluster asks for a token: using the one of ~/.ray/auth_token",
        "option --token is missing here",
        "http://10.0.0.1:8000/health",
        "http://host:8080/path@v1",
        "ssh://git@host/x git@github.com:org/repo.git",
        "tcp://10.0.0.1:29500",
        "/tmp/ray/session_2026-11-21_00-02-50_368596_46/sockets/plasma_store",
        f"worker_id={'0a' * 28} actor {'ab' * 16}",
        "GPU-1f2e3d4c-5b6a-7988-9900-aabbccddeeff",
        "_ZN3c1014ProcessGroupNCCL8WorkNCCL4waitENSt6chronoI",
        "hf_processor_kwargs hf_config hf_generate_with_cache",
        "sk-learn-models/part-of-a-path",
        "basic configuration of a bearer of news",
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
        "PWD=/home/me",
        "secret=None token=<Token 3> password=$PASSWORD",
        "2026-11-21 00:02:50,368 ERROR worker.py:409 -- key: value",
        "lambda x: x['key'] == y",
        "caf\\xe9 é 日本",
    ],
)
def test_innocent_text(text: str) -> None:
    """Text that merely looks near to a secret: names, numbers, addresses, ids.
    It is the same afterwards, also as a line of a log."""
    assert mask(text) == text
    assert redact(text) == text
