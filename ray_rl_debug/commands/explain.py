"""``rayrl-debug explain``: what an id means."""

from __future__ import annotations

import re
import shutil
import textwrap

import click

from ray_rl_debug.model.errors import UsageError

INDENT = "    "


@click.command(epilog="\b\nExamples:\n  rayrl-debug explain         # all ids\n  rayrl-debug explain RRD101")
@click.argument("ids", nargs=-1, metavar="[ID]...")
def explain(ids: tuple[str, ...]) -> None:
    """Say what an id means; without an id, list all.

    An id belongs to a cause, a known error line, a check of the doctor, a fault of a job script, a gap or an error.
    """
    from ray_rl_debug.commands import catalogue

    if not ids:
        for id_, name in catalogue.list_ids():
            click.echo(f"{id_}  {name}")
        return
    texts: list[str] = []
    for given in ids:
        id_ = given.upper() if given.upper().startswith("RRD") else f"RRD{given}"
        text = catalogue.explain(id_)
        if text is None:
            raise UsageError(f"no id {id_}", hint="list all ids: rayrl-debug explain")
        texts.append(text.rstrip())
    width = min(shutil.get_terminal_size((80, 24)).columns, 100)
    click.echo("\n\n".join(_wrapped(text, width) for text in texts))


def _wrapped(text: str, width: int) -> str:
    """`text` with its indented paragraphs broken anew."""

    def broken(found: re.Match[str]) -> str:
        words = " ".join(found[0].split())
        return textwrap.fill(words, width, initial_indent=INDENT, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False)

    return re.sub(rf"^{INDENT}.*(?:\n{INDENT}.*)*", broken, text, flags=re.MULTILINE)
