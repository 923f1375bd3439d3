"""``rayrl-debug slurm``: job scripts rendered, and existing ones linted."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from ray_rl_debug.commands.paths import PatientPath
from ray_rl_debug.model.errors import EXIT_FINDINGS, EXIT_OK, OutputError, UnreadableFileError

if TYPE_CHECKING:
    from ray_rl_debug.slurm.job import Job

FRAMEWORKS = ("ray", "verl", "verl-single", "areal-ray", "areal-slurm", "attach")

GROUP_EPILOG = """\b
Examples:
  rayrl-debug slurm render verl --nodes 4 --gpus-per-node 8 -o job.sbatch
  rayrl-debug slurm lint old.sbatch
  rayrl-debug slurm render attach -o attach.sh && bash attach.sh JOBID
"""

RENDER_EPILOG = """\b
Examples:
  rayrl-debug slurm render ray --nodes 2 -o job.sbatch -- python train.py
  rayrl-debug slurm render ray --gpus-per-node h100:8 --check -o job.sbatch
  rayrl-debug slurm render verl --container apptainer --image verl.sif
  rayrl-debug slurm render verl-single --cpus-per-node 32 --shared --mem 256G
  rayrl-debug slurm render verl --diff old.sbatch -o job.sbatch
  rayrl-debug slurm render attach -o attach.sh
"""

LINT_EPILOG = """\b
Examples:
  rayrl-debug slurm lint job.sbatch
  rayrl-debug slurm lint *.sbatch --format sarif -o lint.sarif

\b
Exit codes: 0 nothing wrong, 1 faults found, 2 wrong usage,
3 a file cannot be read.
"""


@click.group(name="slurm", epilog=GROUP_EPILOG)
def slurm_group() -> None:
    """Write Slurm job scripts that start Ray; find faults in others."""


_SLURM_OPTIONS = (
    click.option("--nodes", type=click.IntRange(min=1), help="Nodes of the job.  [default: 2; 1 for verl-single and areal-slurm]"),
    click.option("--cpus-per-node", type=click.IntRange(min=1), help="CPUs to ask Slurm for.  [default: all of an exclusive node]"),
    click.option("--gpus-per-node", metavar="[TYPE:]N", help="GPUs to ask Slurm for; 0 for a job without GPUs.  [default: 8]"),
    click.option(
        "--gpu-flag",
        type=click.Choice(["gpus-per-node", "gres"]),
        default="gpus-per-node",
        show_default=True,
        help="The option that your site takes for GPUs.",
    ),
    click.option("--mem", default="0", show_default=True, help="Memory per node; 0 is all of it."),
    click.option("--exclusive/--shared", default=True, show_default=True, help="Take whole nodes, or run beside other jobs."),
    click.option("--time", default="24:00:00", show_default=True, help="Time limit."),
    click.option("--partition", help="Partition."),
    click.option("--account", help="Account."),
    click.option("--qos", help="Quality of service."),
    click.option("--constraint", help="Node features."),
    click.option("--reservation", help="Reservation."),
    click.option("--job-name", help="Name of the job.  [default: the framework]"),
    click.option("--output-dir", default="$SLURM_SUBMIT_DIR/logs", show_default=True, help="Folder for the logs of jobs; all nodes must see it."),
    click.option(
        "--signal-lead",
        "signal_lead_s",
        type=click.IntRange(min=10),
        default=120,
        show_default=True,
        help="Seconds from Slurm's signal to the time limit.",
    ),
    click.option(
        "--requeue", type=click.IntRange(min=0), default=0, show_default=True, help="How often the job may requeue itself before its time limit."
    ),
)
_RAY_OPTIONS = (
    click.option("--cmd", help="The program as one string; or give it after --."),
    click.option("--env", multiple=True, metavar="NAME=VALUE", help="Variable for the environment of all steps. Repeatable."),
    click.option("--setup", metavar="FILE", help="File to source first: modules, virtual environment."),
    click.option(
        "--container", type=click.Choice(["none", "apptainer", "pyxis"]), default="none", show_default=True, help="Container that programs run in."
    ),
    click.option("--image", help="Image for --container."),
    click.option("--bind", help="More folders to show inside the image, separated by commas."),
    click.option("--container-args", default="", help="More options of the container runtime, as one string."),
    click.option("--iface", help="Network interface of the head."),
    click.option("--cidr", help="Network of the head, as 10.0.0.0/16."),
    click.option("--port-base", default="auto", show_default=True, help="First of a block of 100 ports; auto takes one from the job's number."),
    click.option("--temp-dir", help="Folder on a local disk; the job makes rrJOBID in it and removes only that.  [default: /tmp]"),
    click.option(
        "--ready-timeout",
        "ready_timeout_s",
        type=click.IntRange(min=5),
        default=300,
        show_default=True,
        help="Seconds until all nodes must be alive.",
    ),
    click.option("--min-nodes", type=click.IntRange(min=1), help="Start once this many nodes are alive.  [default: all]"),
    click.option(
        "--register-timeout",
        "register_timeout_s",
        type=click.IntRange(min=1),
        default=300,
        show_default=True,
        help="Seconds for a worker to register with its raylet.",
    ),
    click.option("--object-store-mb", type=click.IntRange(min=100), help="Size of each node's object store.  [default: Ray's choice]"),
    click.option("--auth", type=click.Choice(["token", "disabled", "auto"]), default="token", show_default=True, help="Authentication of Ray."),
    click.option("--ray-version", metavar="X.Y", help="Version of Ray: leave out options that it does not know.  [default: a recent one]"),
    click.option("--collect-logs/--no-collect-logs", default=True, show_default=True, help="Keep Ray's logs of every node."),
    click.option("--watch/--no-watch", default=True, show_default=True, help="Run rayrl-debug watch beside the job."),
    click.option("--watch-args", default="", help="More options of watch, as one string."),
    click.option(
        "--doctor",
        type=click.Choice(["warn", "fail", "off"]),
        default="warn",
        show_default=True,
        help="Run rayrl-debug doctor first: warn of trouble, or do not start.",
    ),
    click.option(
        "--debug-level",
        type=click.Choice(["off", "light", "full"]),
        default="light",
        show_default=True,
        help="How much evidence of a hang torch and NCCL keep.",
    ),
)


_Command = TypeVar("_Command", bound=Callable[..., object])


def _with(options: tuple[Callable[[_Command], _Command], ...]) -> Callable[[_Command], _Command]:
    def add(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


@slurm_group.command(epilog=RENDER_EPILOG)
@click.argument("framework", type=click.Choice(FRAMEWORKS))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@_with(_SLURM_OPTIONS)
@_with(_RAY_OPTIONS)
@click.option("--check", is_flag=True, help="Also run bash -n and, where Slurm is installed, sbatch --test-only.")
@click.option("--diff", "old", type=PatientPath(path_type=Path), metavar="OLD", help="Ask Slurm for what the script OLD asks; show the difference.")
@click.option("-o", "--output", type=PatientPath(dir_okay=False, path_type=Path), metavar="FILE", help="Write here instead of to stdout.")
def render(framework: str, arguments: tuple[str, ...], check: bool, old: Path | None, output: Path | None, **given: object) -> int:
    """Write a job script: one plain bash file.

    The script runs without this tool. ARGUMENTS after -- are the program that the job runs. With --diff, the difference goes to stdout, and the
    script where --output says.
    """
    from ray_rl_debug.privacy.masking import has_secret
    from ray_rl_debug.slurm.check import check_script
    from ray_rl_debug.slurm.render import render as render_job

    variables = given.get("env")
    holds_secret = has_secret("\n".join((*arguments, str(given.get("cmd") or ""), *(variables if isinstance(variables, tuple) else ()))))
    if old is None:
        text = render_job(_job(framework, arguments, given))
    else:
        text, difference = _like(old, framework, arguments, given)
        click.echo(difference)
    if holds_secret:
        click.echo("the script holds what looks like a secret, and others can read job scripts: export it in the file of --setup instead", err=True)
    if output is None and old is None:
        click.echo(text, nl=False)
    elif output is not None:
        try:
            output.write_text(text, encoding="utf-8", errors="surrogateescape")
        except OSError as e:
            raise OutputError(f"cannot write {output}: {e.strerror}", hint="choose another file with --output") from e
        run_it = "bash" if framework == "attach" else "sbatch"
        click.echo(f"wrote {output}; next: {run_it} {shlex.quote(str(output))}{' JOBID' if framework == 'attach' else ''}", err=True)
    if not check:
        return EXIT_OK
    good, said = check_script(text)
    for line in said:
        click.echo(line, err=True)
    return EXIT_OK if good else EXIT_FINDINGS


def _like(old: Path, framework: str, arguments: tuple[str, ...], given: dict[str, object]) -> tuple[str, str]:
    """The script for what an existing one asks of Slurm, where no option was given; and the difference."""
    from ray_rl_debug.model.errors import UsageError
    from ray_rl_debug.slurm.compare import compare, read_request
    from ray_rl_debug.slurm.render import render as render_job
    from ray_rl_debug.slurm.script import parse

    if framework == "attach":
        raise UsageError("attach is not a job script", hint="compare with the framework that the old script runs")
    before = _read(old)
    request, context = read_request(parse(before)), click.get_current_context()
    default = click.core.ParameterSource.DEFAULT
    taken = {name: value for name, value in request.parameters.items() if context.get_parameter_source(name) is default}
    text = render_job(_job(framework, arguments, {**given, **taken}))
    return text, compare(before, str(old), text, request.left)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as e:
        raise UnreadableFileError(f"cannot read {path}: {e.strerror}", hint="give a job script as sbatch takes it") from e


def _job(framework: str, arguments: tuple[str, ...], given: dict[str, object]) -> Job:
    from ray_rl_debug.model.errors import UsageError
    from ray_rl_debug.slurm.job import Job

    port_base = str(given.pop("port_base"))
    if port_base != "auto" and not port_base.isdigit():
        raise UsageError(f"--port-base {port_base!r} is neither auto nor a number")
    command = str(given.pop("cmd") or "")
    if command and arguments:
        raise UsageError("the program was given twice, by --cmd and after --")
    try:
        words = {name: tuple(shlex.split(str(given.pop(name)))) for name in ("container_args", "watch_args")}
        program = arguments or tuple(shlex.split(command))
    except ValueError as e:
        raise UsageError(f"quotes do not match: {e}") from e
    nodes = given.pop("nodes") or (1 if framework in ("verl-single", "areal-slurm") else 2)
    plain = {**given, **words, "framework": framework, "nodes": nodes, "command": program}
    return Job(**plain, port_base=int(port_base) if port_base != "auto" else None)  # type: ignore[arg-type]


@slurm_group.command(epilog=LINT_EPILOG)
@click.argument("files", nargs=-1, required=True, type=PatientPath(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(["terminal", "json", "sarif"]),
    default="terminal",
    show_default=True,
    help="Format of the list of faults.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("-o", "--output", type=PatientPath(dir_okay=False, path_type=Path), metavar="FILE", help="Write here instead of to stdout.")
def lint(files: tuple[Path, ...], format_: str, as_json: bool, output: Path | None) -> int:
    """Find in job scripts what makes Ray fail under Slurm.

    Each fault comes with its line, the reason and the repair.
    """
    from ray_rl_debug.slurm.lint import lint_script
    from ray_rl_debug.slurm.lint_formats import as_document, as_sarif, as_text

    faults = []
    for path in files:
        faults += lint_script(_read(path), str(path))
    shown = {"json": as_document, "sarif": as_sarif}.get("json" if as_json else format_, as_text)(faults, [str(f) for f in files])
    if output is None:
        click.echo(shown)
    else:
        try:
            output.write_text(shown + "\n", encoding="utf-8", errors="backslashreplace")
        except OSError as e:
            raise OutputError(f"cannot write {output}: {e.strerror}", hint="choose another file with --output") from e
    return EXIT_FINDINGS if faults else EXIT_OK
