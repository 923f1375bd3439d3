"""``rayrl-debug rollout check``: does a saved batch hold what the trainer needs?"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ray_rl_debug.commands.options import is_colour_wanted
from ray_rl_debug.commands.paths import PatientPath

if TYPE_CHECKING:
    from ray_rl_debug.rollouts.checks import Limits

EPILOG = """\b
Examples:
  rayrl-debug rollout check generated/batch_data.pt
  rayrl-debug rollout check batch.pt --tokenizer model/ --max-staleness 4
  rayrl-debug rollout check dataproto.pkl --group-size 8

\b
Exit codes: 0 nothing wrong, 1 something is wrong, 2 wrong usage,
3 the file cannot be read.
"""


@click.command(epilog=EPILOG)
@click.argument("file", type=PatientPath(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@click.option("--tokenizer", metavar="FOLDER", help="The model's folder: its vocabulary, pad token and end tokens.")
@click.option("--max-staleness", "staleness", type=click.IntRange(min=0), help="AReaL's max_head_offpolicyness.")
@click.option("--group-size", type=click.IntRange(min=2), help="Answers per prompt that follow each other.  [default: verl's uid]")
@click.option("--json", "as_json", is_flag=True, help="Print the result, or the error, as one JSON document.")
@click.option("-v", "--verbose", is_flag=True, help="Show all evidence.")
@click.option("--no-color", is_flag=True, help="No colours. NO_COLOR and a pipe have the same effect.")
def check(file: Path, tokenizer: str | None, staleness: int | None, group_size: int | None, as_json: bool, verbose: bool, no_color: bool) -> int:
    """Check a batch that a trainer saved.

    FILE is what torch.save wrote (AReaL) or DataProto.save_to_disk (verl). Nothing in it is run: only tensors and plain data are read. Fields,
    shapes, masks, numbers, log-probabilities, versions, tokens and rewards are checked.
    """
    from ray_rl_debug.endpoints.batches import read_batch
    from ray_rl_debug.model.codec import encode
    from ray_rl_debug.model.errors import EXIT_FINDINGS, EXIT_NO_VERDICT, EXIT_OK
    from ray_rl_debug.render.batch_text import render
    from ray_rl_debug.rollouts.answers import State
    from ray_rl_debug.rollouts.checks import check_batch

    batch = read_batch(file)
    found = check_batch(batch, _limits(tokenizer, staleness, group_size), file.name)
    if as_json:
        click.echo(encode(found).decode())
    else:
        width = min(max(shutil.get_terminal_size((100, 24)).columns, 60), 140) if sys.stdout.isatty() else 120
        for line in render(found, width=width, colour=is_colour_wanted(no_color), verbose=verbose):
            click.echo(line)
    return {State.AGREE: EXIT_OK, State.DIFFER: EXIT_FINDINGS}.get(found.state, EXIT_NO_VERDICT)


def _limits(tokenizer: str | None, staleness: int | None, group_size: int | None) -> Limits:
    from ray_rl_debug.rollouts.checks import Limits

    if tokenizer is None:
        return Limits(staleness=staleness, group_size=group_size)
    from ray_rl_debug.endpoints.transformers_model import Reference

    model = Reference(tokenizer)
    pad = model.tokenizer.pad_token_id
    return Limits(vocabulary=model.vocabulary(), pad=pad, ends=tuple(model.end_tokens()) or None, staleness=staleness, group_size=group_size)
