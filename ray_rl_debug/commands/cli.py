"""The command ``rayrl-debug``: finds the verb, runs it, turns every error into three lines or one document."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence

import click

from ray_rl_debug.commands import streams
from ray_rl_debug.commands.demo import demo
from ray_rl_debug.commands.doctor import doctor
from ray_rl_debug.commands.explain import explain
from ray_rl_debug.commands.metrics import metrics
from ray_rl_debug.commands.report import report
from ray_rl_debug.commands.rollout import rollout_group
from ray_rl_debug.commands.slurm import slurm_group
from ray_rl_debug.commands.snapshot import snapshot
from ray_rl_debug.commands.timeline import timeline
from ray_rl_debug.commands.version import print_version
from ray_rl_debug.commands.watch import watch
from ray_rl_debug.model.errors import (
    EXIT_INTERRUPTED,
    EXIT_NO_VERDICT,
    EXIT_OK,
    EXIT_USAGE,
    InterruptedCommandError,
    OutputError,
    RayRlDebugError,
    ShortageError,
    StalledOutputError,
)

ERROR_SCHEMA = "rayrl-debug/error/1"
_HELP_INSTEAD: tuple[type[click.UsageError], ...] = tuple(filter(None, [getattr(click.exceptions, "NoArgsIsHelpError", None)]))
"""What click raises for a group without a command since 8.2; older versions print the help and exit."""

EPILOG = """\b
Examples:
  rayrl-debug snapshot                 # job hangs: run this on the head node
  rayrl-debug snapshot -o hang         # the same, and write files into hang/
  rayrl-debug snapshot --here          # this node only; works without Ray
  rayrl-debug report hang/snapshot.json.gz
  rayrl-debug report rank*.txt         # stacks that you collected by hand
  rayrl-debug metrics train.log        # does the run learn?
  rayrl-debug explain RRD101           # what an id means
  ray job submit -- rayrl-debug watch  # reports the next hang while it lasts

\b
Exit codes: 0 nothing wrong and enough seen, 1 findings, 2 wrong usage,
3 no verdict, 130 interrupted (what was gathered is still written).
"""


@click.group(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=print_version, help="Show what a bug report needs, and exit.")
def cli() -> None:
    """Find the rank, actor, process or service that hangs an RL run on Ray, and why."""


VERBS: tuple[click.Command, ...] = (snapshot, watch, report, timeline, metrics, rollout_group, doctor, slurm_group, explain, demo)
for _verb in VERBS:
    cli.add_command(_verb)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; never raises."""
    if arguments is not None:
        return _guarded(list(arguments))
    from ray_rl_debug.commands import front

    given = sys.argv[1:]
    return front.run(lambda: _work(given)) if front.VERBS.intersection(given[:1]) else _work(given)


def _work(given: list[str]) -> int:
    streams.take_over()
    return streams.leave(_guarded(given, streams.end_on_signals))


def _guarded(given: list[str], begin: Callable[[], None] = lambda: None) -> int:
    try:
        begin()
        return _run(cli, given)
    except KeyboardInterrupt:
        streams.end_in_peace()
        return _fail(given, "interrupted", InterruptedCommandError.hint, InterruptedCommandError.id, EXIT_INTERRUPTED)
    except StalledOutputError as e:
        return _fail([], str(e), "write the output to a file: rayrl-debug ... > FILE, or -o DIR", OutputError.id, EXIT_NO_VERDICT)
    except BrokenPipeError:
        # The reader (head, less) went away; point stdout elsewhere so that the interpreter's last flush stays silent.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_INTERRUPTED


def _backtrace() -> None:
    from ray_rl_debug.privacy.masking import mask

    click.echo(mask(traceback.format_exc()), err=True)


def _run(command: click.Command, given: list[str], backtrace: Callable[[], None] = _backtrace) -> int:
    try:
        result = command.main(args=given, prog_name="rayrl-debug", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else EXIT_OK
    except _HELP_INSTEAD as e:
        click.echo(e.format_message(), err=True)
        return EXIT_USAGE
    except SystemExit as e:
        if isinstance(e.__context__, OSError):  # click answers a closed pipe with an exit of its own, which is none of our codes
            return EXIT_INTERRUPTED
        return e.code if isinstance(e.code, int) else EXIT_OK
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as e:
        where = e.ctx.command_path if isinstance(e, click.UsageError) and e.ctx else "rayrl-debug"
        return _fail(given, e.format_message(), f"see {where} --help", "RRD957", EXIT_USAGE)
    except RayRlDebugError as e:
        if streams.was_asked_to_end() and e.exit_code != EXIT_INTERRUPTED:
            raise KeyboardInterrupt from None
        if _is_verbose(given) and e.__cause__ is not None:
            backtrace()
        return _fail(given, str(e), e.hint, e.id, e.exit_code)
    except (KeyboardInterrupt, BrokenPipeError, StalledOutputError):
        raise
    except Exception as e:  # noqa: BLE001 - the last net: a tired reader gets three lines, -v gets the backtrace
        if streams.was_asked_to_end():
            raise KeyboardInterrupt from None
        if _is_verbose(given):
            backtrace()
        from ray_rl_debug.commands.shortages import shortage

        if (short := shortage(e)) is not None:
            return _fail(given, *short, ShortageError.id, EXIT_NO_VERDICT)
        return _fail(given, f"{type(e).__name__}: {e}", RayRlDebugError.hint, RayRlDebugError.id, EXIT_NO_VERDICT)


def _fail(given: list[str], message: str, hint: str, id_: str, code: int) -> int:
    from ray_rl_debug.privacy.masking import mask

    message, hint = mask(message), mask(hint)
    if _wants_json(given):
        body = {"message": message, "hint": hint, "id": id_, "exit_code": code}
        click.echo(json.dumps({"schema": ERROR_SCHEMA, "error": body}, ensure_ascii=False))
    from ray_rl_debug.render.writer import neutralise

    click.echo(f"error: {neutralise(message)}\nhint:  {hint}\nid:    {id_} (rayrl-debug explain {id_})", err=True)
    return code


def _wants_json(given: list[str]) -> bool:
    joined = " ".join(given)
    return "--json" in given or "--format json" in joined or "--format=json" in joined


def _is_verbose(given: list[str]) -> bool:
    return "--verbose" in given or any(a.startswith("-") and not a.startswith("--") and "v" in a for a in given)


if __name__ == "__main__":
    sys.exit(main())
