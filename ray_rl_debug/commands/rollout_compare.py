"""``rayrl-debug rollout compare``: does the engine produce what the reference produces?"""

from __future__ import annotations

import click

EPILOG = """\b
Examples:
  rayrl-debug rollout compare before.jsonl after.jsonl
"""


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def compare(files: tuple[str, ...]) -> int:
    """Compare what an inference engine produces with a reference."""
    raise click.UsageError("not built yet")
