"""``rayrl-debug doctor``: may this cluster start, be joined, be inspected."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ray_rl_debug.commands.options import is_colour_wanted, progress
from ray_rl_debug.commands.paths import PatientPath
from ray_rl_debug.model.errors import EXIT_FINDINGS, EXIT_NO_VERDICT, EXIT_OK, NoClusterError, UsageError

if TYPE_CHECKING:
    from ray_rl_debug.model.health import Examination, Health, Plan

EPILOG = """\b
Examples:
  rayrl-debug doctor                            # the cluster that runs here
  rayrl-debug doctor --preflight --num-cpus 64  # before ray start
  rayrl-debug doctor --jobid 4711               # nodes of a running Slurm job
  rayrl-debug doctor --logs /tmp/ray/session_latest  # after a crash
  rayrl-debug doctor --agent-lightning http://127.0.0.1:4747
  srun rayrl-debug doctor --here -q -o doc      # on each node of a job ...
  rayrl-debug doctor doc                        # ... and all of them together

\b
Exit codes: 0 nothing fails, 1 something fails (with --strict also warnings),
2 wrong usage, 3 nothing could be measured.
"""
_PATH = PatientPath(path_type=Path)


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, type=PatientPath(exists=True, path_type=Path), metavar="[FILE]...")
@click.option("--address", metavar="HOST:PORT", help="Address of the cluster; not needed where one runs here.")
@click.option("--jobid", "job_id", metavar="N", help="Check every node of a running Slurm job, in a small step of its own.")
@click.option("--here", is_flag=True, help="Check this node only, without Ray.")
@click.option("--preflight", is_flag=True, help="Before start: also measure what a start costs, and whether ports are free (implies --here).")
@click.option("--logs", type=_PATH, multiple=True, metavar="DIR", help="After a crash: look for known errors in these logs. Repeatable.")
@click.option("--agent-lightning", "store_url", metavar="URL", help="Check Agent-Lightning's store: queue, runners, traces, rewards, proxy.")
@click.option("--num-cpus", type=click.IntRange(min=0), help="CPUs that Ray will get.  [default: what Ray would take]")
@click.option("--num-gpus", type=click.IntRange(min=0), help="GPUs that Ray will get.")
@click.option("--temp-dir", metavar="DIR", help="Ray's temporary folder.  [default: /tmp/ray]")
@click.option("--log-dir", metavar="DIR", help="The job's log folder; all nodes must see it.")
@click.option("--port-base", type=click.IntRange(1024, 65000), help="First of the job's block of ports.  [default: Ray's own ports]")
@click.option("--expect", metavar="NAMES", default="", help="With FILE: nodes that must be in it, separated by commas.")
@click.option("--facts", metavar="PLAN", hidden=True, help="What --jobid runs on each node: its facts as lines on stdout.")
@click.option("--strict", is_flag=True, help="Count warnings as failures.")
@click.option("--timeout", "timeout_s", type=click.FloatRange(min=5), default=60.0, show_default=True, help="Seconds for the whole cluster.")
@click.option("--json", "as_json", is_flag=True, help="Print the results, or the error, as one JSON document.")
@click.option("-o", "--output", type=PatientPath(file_okay=False, path_type=Path), metavar="DIR", help="Write the facts into DIR, one file per node.")
@click.option("-v", "--verbose", is_flag=True, help="Show also what is good.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress on stderr.")
@click.option("--no-color", is_flag=True, help="No colours. NO_COLOR and a pipe have the same effect.")
def doctor(
    files: tuple[Path, ...],
    address: str | None,
    job_id: str | None,
    here: bool,
    preflight: bool,
    logs: tuple[Path, ...],
    store_url: str | None,
    expect: str,
    facts: str | None,
    strict: bool,
    timeout_s: float,
    as_json: bool,
    output: Path | None,
    verbose: bool,
    quiet: bool,
    no_color: bool,
    **plan: object,
) -> int:
    """Check that Ray can start here, be joined and be inspected.

    Each line says what was measured, what it should be, what happens otherwise, and what cures it. FILE is what -o wrote on several nodes, or a
    folder of such files.
    """
    from ray_rl_debug.doctor import CHECKS, LOG_CHECKS, STORE_CHECKS, examine

    if sum(map(bool, (files, logs, here or preflight, address, job_id, store_url))) > 1:
        raise UsageError(
            "--address, --jobid, --here or --preflight, --logs, --agent-lightning and FILE exclude each other", hint="give only one of them"
        )
    if job_id is not None and not job_id.isdigit():
        raise UsageError(f"--jobid {job_id!r} is not the number of a job", hint="write it as squeue does, such as 4711")
    if facts is not None:
        return _tell_facts(facts)
    from ray_rl_debug.capture import doctor_facts
    from ray_rl_debug.imports.doctor_logs import check_logs

    show = progress(quiet)
    checks = STORE_CHECKS if store_url else LOG_CHECKS if logs else CHECKS
    if store_url:
        health = doctor_facts.check_store(store_url, timeout_s=min(timeout_s, 20.0))
    elif logs:
        health = check_logs(logs)
    elif files:
        health = doctor_facts.read_files(files, [n for n in expect.split(",") if n])
    elif job_id is not None:
        health = doctor_facts.check_job(job_id, _plan(plan, output), timeout_s=timeout_s, progress=show)
    else:
        health = _look(address, here, preflight, timeout_s, _plan(plan, output), show)
    found = examine(health, checks)
    if output is not None:
        doctor_facts.save(output, health.nodes)
    _print(found, as_json, no_color, verbose, f" of the store {store_url}" if store_url else None)
    return _exit_code(found, strict)


def _tell_facts(plan: str) -> int:
    import msgspec

    from ray_rl_debug.capture.doctor_facts import check_here
    from ray_rl_debug.model.codec import encode
    from ray_rl_debug.model.health import Plan
    from ray_rl_debug.slurm.node_lines import write_lines

    for node in check_here(msgspec.json.decode(plan, type=Plan)).nodes:
        click.echo("\n".join(write_lines(node.name, encode(node))))
    return EXIT_OK


def _plan(given: dict[str, object], output: Path | None) -> Plan:
    import msgspec

    from ray_rl_debug.model.health import Plan

    timeout = os.environ.get("RAY_worker_register_timeout_seconds", "")  # noqa: SIM112 Ray's own spelling
    return msgspec.convert(
        {**given, "register_timeout_s": float(timeout) if timeout.isdigit() else 60.0, "meeting_dir": str(output) if output else None}, type=Plan
    )


def _look(address: str | None, here: bool, preflight: bool, timeout_s: float, plan: Plan, show: object) -> Health:
    import msgspec

    from ray_rl_debug.capture import doctor_facts
    from ray_rl_debug.cluster.address import find_address

    assert callable(show)
    if here or preflight:
        return doctor_facts.check_here(msgspec.structs.replace(plan, is_preflight=preflight))
    try:
        found = find_address(address, os.environ)
    except NoClusterError:
        show("no Ray cluster runs here: checking this node before start (--preflight)")
        return doctor_facts.check_here(msgspec.structs.replace(plan, is_preflight=True))
    return doctor_facts.check_cluster(found, plan, timeout_s=timeout_s, progress=show)


def _print(found: Examination, as_json: bool, no_color: bool, verbose: bool, what: str | None) -> None:
    from ray_rl_debug.model.codec import encode
    from ray_rl_debug.render.checkup import render

    if as_json:
        click.echo(encode(found).decode())
        return
    width = min(max(shutil.get_terminal_size((120, 24)).columns, 80), 160) if sys.stdout.isatty() else 120
    for line in render(found, width=width, colour=is_colour_wanted(no_color), verbose=verbose, what=what):
        click.echo(line)


def _exit_code(found: Examination, strict: bool) -> int:
    from ray_rl_debug.model.health import Status

    if found.state is Status.FAIL or (strict and found.state is Status.WARN):
        return EXIT_FINDINGS
    return EXIT_NO_VERDICT if found.state is Status.UNKNOWN else EXIT_OK
