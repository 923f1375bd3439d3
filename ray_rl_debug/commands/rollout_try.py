"""``rayrl-debug rollout try``: an agent's code alone, in groups, in batches, before a training run has to find out."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ray_rl_debug.bounded.opening import open_regular
from ray_rl_debug.commands.options import is_colour_wanted, progress
from ray_rl_debug.commands.paths import PatientPath
from ray_rl_debug.model.errors import EXIT_FINDINGS, EXIT_INTERRUPTED, EXIT_NO_VERDICT, EXIT_OK, UnreadableFileError, UsageError

if TYPE_CHECKING:
    from ray_rl_debug.model.trial import Gate, Plan, Trial

EPILOG = """\b
Examples:
  rayrl-debug rollout try my_agent.py:MyAgent
  rayrl-debug rollout try my_agent:MyAgent --data train.jsonl --batch-size 32
  rayrl-debug rollout try my_agent:MyAgent --endpoint http://127.0.0.1:8000/v1
  rayrl-debug rollout try my_agent:MyAgent --stalls 0.05 --failures 0.1
  rayrl-debug rollout try my_agent:MyAgent --config grpo.yaml

\b
Exit codes: 0 nothing fails, 1 something fails, 2 wrong usage, 3 no verdict,
130 interrupted (what was measured is printed).
"""
DEFAULT_ROW: dict[str, object] = {
    "messages": [{"role": "user", "content": "What is 6 times 7?"}],
    "question": "What is 6 times 7?",
    "answer": "42",
}
MAX_ROWS = 4096
MAX_DATA_BYTES = 64 << 20
MAX_CONFIG_BYTES = 4 << 20


@click.command(name="try", epilog=EPILOG)
@click.argument("target", metavar="MODULE:CLASS")
@click.option("--batch-size", type=click.IntRange(1, 4096), default=8, show_default=True, help="Prompts of a batch.")
@click.option("--group-size", type=click.IntRange(1, 1024), default=4, show_default=True, help="Episodes of each prompt.")
@click.option("--concurrency", metavar="N,N,...", default="", help="Levels to go through before the whole batch.  [default: powers of two]")
@click.option("--rounds", type=click.IntRange(1, 20), default=3, show_default=True, help="Times the whole batch is run; leaks need three.")
@click.option("--timeout", "timeout_s", type=click.FloatRange(min=0.5), default=60.0, show_default=True, help="Seconds for one episode.")
@click.option("--deadline", "deadline_s", type=click.FloatRange(min=5), default=600.0, show_default=True, help="Seconds for everything.")
@click.option(
    "--endpoint",
    "endpoints",
    multiple=True,
    metavar="URL",
    help="OpenAI-compatible server, with /v1. Repeatable.  [default: AREAL_LLM_SERVER_ADDRS, else a stand-in]",
)
@click.option("--stand-in", "wants_stand_in", is_flag=True, help="Use the stand-in although AREAL_LLM_SERVER_ADDRS is set.")
@click.option("--model", metavar="NAME", help="Model that Agent-Lightning's resource names.")
@click.option("--api-key-env", metavar="NAME", default="OPENAI_API_KEY", show_default=True, help="Variable with the endpoint's key.")
@click.option("--data", type=PatientPath(path_type=Path), metavar="FILE", help="JSON lines, one prompt each.  [default: one question]")
@click.option("--init", metavar="JSON", default="{}", help="Arguments of the constructor, as a JSON object.")
@click.option("--extra", metavar="JSON", default="{}", help="More keyword arguments of each call, as a JSON object.")
@click.option("--tokenizer", metavar="PATH", help="For verl's agent loops.  [default: bytes]")
@click.option("--max-tokens", type=click.IntRange(min=1), default=64, show_default=True, help="Longest answer of the engine.")
@click.option("--python", metavar="PATH", help="Interpreter that has the agent's packages.  [default: ours]")
@click.option("--latency", type=click.FloatRange(min=0), default=0.1, show_default=True, help="Stand-in: seconds of an answer.")
@click.option("--failures", type=click.FloatRange(0, 1), default=0.0, help="Stand-in: part of the requests that get status 500.")
@click.option("--stalls", type=click.FloatRange(0, 1), default=0.0, help="Stand-in: part of the requests that get no answer.")
@click.option("--slots", type=click.IntRange(min=1), help="Stand-in: requests that it works on at once.  [default: all]")
@click.option("--answer", metavar="TEXT", default="The answer is 42.", help="Stand-in: what it answers.")
@click.option(
    "--config", type=PatientPath(path_type=Path), metavar="YAML", help="AReaL's configuration: would its staleness control let the batch through?"
)
@click.option("--max-concurrent-rollouts", type=click.IntRange(min=1), help="The same, by hand; also the two below.")
@click.option("--max-head-offpolicyness", type=click.IntRange(min=0), help="As in rollout.max_head_offpolicyness.")
@click.option("--consumer-batch-size", type=click.IntRange(min=1), help="As in rollout.consumer_batch_size.")
@click.option("--json", "as_json", is_flag=True, help="Print the trial, or the error, as one JSON document.")
@click.option("-v", "--verbose", is_flag=True, help="Show whole await chains, what is good, and what the agent prints.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress on stderr.")
@click.option("--no-color", is_flag=True, help="No colours. NO_COLOR and a pipe have the same effect.")
def try_agent(target: str, as_json: bool, verbose: bool, quiet: bool, no_color: bool, **given: Any) -> int:
    """Run an agent's episodes alone, grouped and batched.

    What would go wrong in training is named, with the line of code.

    MODULE:CLASS (or FILE.py:CLASS) is called as its framework would: AReaL's `async def run(self, data, **extra_kwargs)` and
    `RolloutWorkflow.arun_episode`, verl's AgentLoopBase, Agent-Lightning's LitAgent. It runs in a process of its own.
    """
    from ray_rl_debug.endpoints.greeting import greet
    from ray_rl_debug.trial.conduct import conduct
    from ray_rl_debug.trial.judge import judge

    show = progress(quiet)
    plan = _plan(target, given)
    if not plan.endpoints:
        show("no endpoint is given: a stand-in on the loopback answers")
    for url in plan.endpoints:
        greet(url, plan.api_key)
    stop = threading.Event()
    try:
        facts = _interruptibly(lambda: conduct(plan, progress=show, echo=show if verbose else None, stop=stop), stop)
    except OSError as e:
        raise UsageError(f"cannot start {plan.python or sys.executable}: {e.strerror}", hint="give another interpreter with --python") from e
    trial = judge(facts)
    _print(trial, as_json, no_color, verbose)
    return EXIT_INTERRUPTED if facts.is_interrupted else _exit_code(trial)


def _interruptibly(work: Any, stop: threading.Event) -> Any:
    """What `work` returns; Ctrl-C asks it to end with what there is, a second one ends us."""
    result: list[Any] = []
    error: list[BaseException] = []
    done = threading.Event()  # a join that is interrupted may take the thread for ended (CPython 3.11)

    def run() -> None:
        try:
            result.append(work())
        except BaseException as e:  # noqa: BLE001 raised where the command waits
            error.append(e)
        finally:
            done.set()

    threading.Thread(target=run, name="trial", daemon=True).start()
    try:
        done.wait()
    except KeyboardInterrupt:
        stop.set()
        done.wait()
    if error:
        raise error[0]
    return result[0]


def _plan(target: str, given: dict[str, Any]) -> Plan:
    from ray_rl_debug.model.trial import Plan

    endpoints = () if given["wants_stand_in"] else _endpoints(given["endpoints"])
    return Plan(
        target=_absolute(target),
        batch_size=given["batch_size"],
        group_size=given["group_size"],
        levels=_levels(given["concurrency"]),
        rounds=given["rounds"],
        timeout_s=given["timeout_s"],
        deadline_s=given["deadline_s"],
        endpoints=endpoints,
        model=given["model"],
        api_key=(os.environ.get(given["api_key_env"]) or "none") if endpoints else "none",
        max_tokens=given["max_tokens"],
        init=_object(given["init"], "--init"),
        extra=_object(given["extra"], "--extra"),
        tokenizer=given["tokenizer"],
        rows=_rows(given["data"]),
        python=given["python"],
        stand_in={
            "latency_s": given["latency"],
            "failures": given["failures"],
            "stalls": given["stalls"],
            "slots": given["slots"],
            "answer": given["answer"],
        },
        gate=_gate(given),
    )


def _absolute(target: str) -> str:
    where, _, name = target.rpartition(":")
    if not where or not name or ":" in where:
        raise UsageError(f"{target!r} is not MODULE:CLASS", hint="write it as my_agent:MyAgent or path/my_agent.py:MyAgent")
    if not where.endswith(".py"):
        if Path(where).is_file():
            raise UsageError(f"{where} is no Python file", hint="write it as my_agent:MyAgent or path/my_agent.py:MyAgent")
        return target
    if not Path(where).is_file():
        raise UsageError(f"there is no file {where}", hint="write it as my_agent:MyAgent or path/my_agent.py:MyAgent")
    return f"{Path(where).absolute()}:{name}"


def _endpoints(given: tuple[str, ...]) -> tuple[str, ...]:
    addresses = given or tuple(a for a in os.environ.get("AREAL_LLM_SERVER_ADDRS", "").split(",") if a)
    found = []
    for address in addresses:
        url = address if "//" in address else f"http://{address}"
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"--endpoint {address!r} is no URL", hint="write it as http://127.0.0.1:8000/v1")
        url = url.rstrip("/")
        found.append(url if url.endswith("/v1") else f"{url}/v1")
    return tuple(found)


def _levels(text: str) -> tuple[int, ...]:
    words = [w.strip() for w in text.split(",") if w.strip()]
    if any(not w.isdigit() or not 0 < int(w) <= 65536 for w in words):
        raise UsageError(f"--concurrency {text!r} is no list of whole numbers", hint="write it as 1,2,4,8")
    return tuple(int(w) for w in words)


def _object(text: str, option: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise UsageError(f"{option} is no JSON: {e}", hint=f"write it as {option} '{{\"name\": 1}}'") from e
    if not isinstance(found, dict):
        raise UsageError(f"{option} is no JSON object", hint=f"write it as {option} '{{\"name\": 1}}'")
    return found


def _rows(path: Path | None) -> tuple[dict[str, object], ...]:
    if path is None:
        return (DEFAULT_ROW,)
    rows: list[dict[str, object]] = []
    try:
        with open_regular(path, follow=True) as file:
            data = file.read(MAX_DATA_BYTES)
    except OSError as e:
        raise UnreadableFileError(f"cannot read {path}: {e.strerror}", hint="give a file of JSON lines") from e
    lines = data.splitlines()
    if len(data) == MAX_DATA_BYTES:
        lines = lines[:-1]
    for number, line in enumerate(lines[:MAX_ROWS], 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as e:
            raise UnreadableFileError(f"{path}, line {number}: no JSON: {str(e)[:100]}", hint="give a file of JSON lines, one object each") from e
        if not isinstance(row, dict):
            raise UnreadableFileError(f"{path}, line {number}: no JSON object", hint="give a file of JSON lines, one object each")
        rows.append(row)
    if not rows:
        raise UnreadableFileError(f"{path} holds no row", hint="give a file of JSON lines, one object each")
    return tuple(rows)


def _gate(given: dict[str, Any]) -> Gate | None:
    from ray_rl_debug.model.trial import Gate

    names = {"max_concurrent_rollouts": "max_concurrent", "max_head_offpolicyness": "max_offpolicyness", "consumer_batch_size": "consumer_batch_size"}
    found: dict[str, Any] = {}
    if given["config"] is not None:
        rollout = _rollout_of(given["config"])
        found = {to: rollout[name] for name, to in names.items() if isinstance(rollout.get(name), int)}
    found.update({to: given[name] for name, to in names.items() if given[name] is not None})
    if not found and given["config"] is None:
        return None
    return Gate(batch_size=given["batch_size"], **found)


def _rollout_of(path: Path) -> dict[str, Any]:
    """The section ``rollout`` of AReaL's configuration; what it interpolates from elsewhere in the file is looked up there."""
    import yaml

    try:
        with open_regular(path, follow=True) as file:
            text = file.read(MAX_CONFIG_BYTES + 1)
        if len(text) > MAX_CONFIG_BYTES:
            raise UnreadableFileError(f"{path} is larger than a configuration: over {MAX_CONFIG_BYTES >> 20} MiB", hint="give AReaL's YAML file")
        whole = yaml.safe_load(text)
    except OSError as e:
        raise UnreadableFileError(f"cannot read {path}: {e.strerror}", hint="give AReaL's YAML file") from e
    except (yaml.YAMLError, ValueError, RecursionError) as e:  # a ValueError: a date with a thirteenth month, a number of thousands of digits
        raise UnreadableFileError(f"{path} is no YAML: {str(e).splitlines()[0][:100]}", hint="give AReaL's YAML file") from e
    rollout = whole.get("rollout") if isinstance(whole, dict) else None
    if not isinstance(rollout, dict):
        raise UnreadableFileError(f"{path} has no section rollout", hint="give the configuration of the training run")
    return {k: _resolved(v, whole) for k, v in rollout.items()}


def _resolved(value: Any, whole: Any) -> Any:
    """``${train_dataset.batch_size}`` → its value; anything more elaborate stays as it is."""
    if not isinstance(value, str) or not value.startswith("${") or not value.endswith("}"):
        return value
    found = whole
    for part in value[2:-1].split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return value if found is None else found


def _print(trial: Trial, as_json: bool, no_color: bool, verbose: bool) -> None:
    from ray_rl_debug.model.codec import encode
    from ray_rl_debug.render.trial import render

    if as_json:
        click.echo(encode(trial).decode())
        return
    width = min(max(shutil.get_terminal_size((110, 24)).columns, 80), 140) if sys.stdout.isatty() else 110
    for line in render(trial, width=width, colour=is_colour_wanted(no_color), verbose=verbose):
        click.echo(line)


def _exit_code(trial: Trial) -> int:
    from ray_rl_debug.model.health import Status

    return {Status.FAIL: EXIT_FINDINGS, Status.UNKNOWN: EXIT_NO_VERDICT}.get(trial.state, EXIT_OK)
