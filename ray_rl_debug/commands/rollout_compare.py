"""``rayrl-debug rollout compare``: does the engine produce what the reference produces?"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from ray_rl_debug.commands.options import is_colour_wanted, progress
from ray_rl_debug.commands.paths import PatientPath
from ray_rl_debug.model.errors import EXIT_FINDINGS, EXIT_NO_VERDICT, EXIT_OK, InterruptedCommandError

EPILOG = """\b
Examples:
  rayrl-debug rollout compare prompts.jsonl \\
    --engine http://127.0.0.1:8000/v1 --reference model/ -o compared
  rayrl-debug rollout compare prompts.jsonl --temperature 1 --samples 4 \\
    --engine http://127.0.0.1:8000/v1 --reference http://127.0.0.1:8001/v1
  rayrl-debug rollout compare compared/engine.jsonl --reference model/
  rayrl-debug rollout compare monday/engine.jsonl tuesday/engine.jsonl
  rayrl-debug rollout compare prompts.jsonl --reference step200/ \\
    --engine http://127.0.0.1:8000/v1 --after-update step100/

\b
Exit codes: 0 they agree, 1 they differ, 2 wrong usage, 3 no verdict,
130 interrupted (answers are kept with -o; the same command goes on).
"""


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, type=PatientPath(exists=True, dir_okay=False, path_type=Path), metavar="FILE [FILE]")
@click.option("--engine", metavar="URL", help="The engine, up to /v1; FILE then holds prompts.")
@click.option("--model", metavar="NAME", help="Model of the engine.  [default: the first that it lists]")
@click.option("--reference", metavar="FOLDER|URL", help="A model for Transformers, or a second endpoint.")
@click.option("--after-update", metavar="OLD", help="The old model's folder, or the engine's old answers: did it take the new weights?")
@click.option("--limit", type=click.IntRange(min=1), default=64, show_default=True, help="Use this many prompts.")
@click.option("--samples", type=click.IntRange(min=1), default=1, show_default=True, help="Answers per prompt.")
@click.option("--max-tokens", type=click.IntRange(min=1), default=64, show_default=True, help="Longest answer.")
@click.option("--temperature", type=click.FloatRange(min=0), default=0.0, show_default=True, help="0 takes the best token each time.")
@click.option("--seed", type=int, help="Seed for sampling, where the engine takes one.")
@click.option("--reward", metavar="MODULE:FUNCTION", help="Function (record, text) that returns a number.")
@click.option("--dtype", type=click.Choice(["float32", "bfloat16", "float16"]), help="Precision of the reference.  [default: of its files]")
@click.option("--device", default="cpu", show_default=True, help="Device of the reference; a GPU may be in use by the job.")
@click.option("--generate/--no-generate", default=True, show_default=True, help="Let the reference answer too, or only score.")
@click.option("--concurrency", type=click.IntRange(1, 256), default=4, show_default=True, help="Requests at once.")
@click.option("--timeout", "timeout_s", type=click.FloatRange(min=1), default=120.0, show_default=True, help="Seconds for one request.")
@click.option("--retries", type=click.IntRange(0, 20), default=4, show_default=True, help="More attempts, with growing pauses.")
@click.option("-o", "--output", type=PatientPath(file_okay=False, path_type=Path), metavar="DIR", help="Keep answers, result and page in DIR.")
@click.option("--json", "as_json", is_flag=True, help="Print the result, or the error, as one JSON document.")
@click.option("-v", "--verbose", is_flag=True, help="Show all places where answers part.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress on stderr.")
@click.option("--no-color", is_flag=True, help="No colours. NO_COLOR and a pipe have the same effect.")
def compare(
    files: tuple[Path, ...],
    output: Path | None,
    as_json: bool,
    verbose: bool,
    quiet: bool,
    no_color: bool,
    **asked: object,
) -> int:
    """Compare what an inference engine produces with a reference.

    FILE holds prompts for --engine, or one or two recordings (of -o, of rollout record, or batches that AReaL or verl saved). Chat template and
    tokenizer are compared first, then end tokens, then log-probabilities: rounding and other weights are told apart. A server's key is read from
    OPENAI_API_KEY.
    """
    import msgspec

    from ray_rl_debug.endpoints.comparing import Asked, run
    from ray_rl_debug.model.codec import encode
    from ray_rl_debug.render.rollout_text import render
    from ray_rl_debug.saving.rollouts import save

    given = msgspec.convert({**asked, "files": files, "output": output}, type=Asked)
    show = progress(quiet)
    try:
        trial, result = run(given, show)
    except KeyboardInterrupt as e:
        kept = f"the answers are kept in {output}: the same command goes on from there"
        lost = "answers are kept with -o DIR, and the same command goes on then"
        raise InterruptedCommandError("interrupted", hint=kept if output is not None else lost) from e
    if output is not None:
        save(output, trial, result)
        show(f"saved in {output}")
    if as_json:
        click.echo(encode(result).decode())
    else:
        width = min(max(shutil.get_terminal_size((100, 24)).columns, 60), 140) if sys.stdout.isatty() else 120
        for line in render(result, width=width, colour=is_colour_wanted(no_color), verbose=verbose):
            click.echo(line)
    return _exit_code(result.verdict.state.value)


def _exit_code(state: str) -> int:
    return {"agree": EXIT_OK, "differ": EXIT_FINDINGS}.get(state, EXIT_NO_VERDICT)
