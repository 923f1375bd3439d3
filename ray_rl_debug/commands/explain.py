"""``rayrl-debug explain``: what an id means."""

from __future__ import annotations

import click

from ray_rl_debug.model.errors import UsageError


@click.command(epilog="\b\nExamples:\n  rayrl-debug explain            all ids\n  rayrl-debug explain RRD101")
@click.argument("ids", nargs=-1, metavar="[ID]...")
def explain(ids: tuple[str, ...]) -> None:
    """Say what an id means: rules, gaps and errors. Without ID, list all."""
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
    click.echo("\n\n".join(texts))
