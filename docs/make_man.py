"""Makes the manual page from the command line itself: python docs/make_man.py

It writes ``rayrl-debug.1``, which the wheel installs as ``share/man/man1/rayrl-debug.1``; a test compares it with what would be written now.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from ray_rl_debug import __version__
from ray_rl_debug.commands.cli import cli

PAGE = Path(__file__).parent / "rayrl-debug.1"
NAME = "rayrl-debug"


def page() -> str:
    return "\n".join(lines()) + "\n"


def lines() -> Iterator[str]:
    yield '.\\" Made by docs/make_man.py'
    yield f'.TH RAYRL\\-DEBUG 1 "" "{NAME} {__version__}" "User Commands"'
    yield from (".SH NAME", f"{roff(NAME)} \\- {roff(first_sentence(cli))}")
    yield from (".SH SYNOPSIS", f".B {roff(NAME)}", "[OPTIONS] COMMAND [ARGS]...")
    yield ".SH DESCRIPTION"
    yield from paragraphs(cli.help or "")
    yield ".SH OPTIONS"
    yield from options(cli, NAME)
    yield ".SH COMMANDS"
    for name, command in below(cli, NAME):
        yield f".SS {roff(name)}"
        yield from ("Usage:", f".B {roff(name)}", roff(" ".join(command.collect_usage_pieces(context(command, name)))))
        yield ".PP"
        yield from paragraphs(command.help or "")
        yield from options(command, name)
        if command.epilog:
            yield from paragraphs(command.epilog)
    yield ".SH EXAMPLES AND EXIT CODES"
    yield from paragraphs(cli.epilog or "")


def context(command: click.Command, name: str) -> click.Context:
    return click.Context(command, info_name=name, help_option_names=["-h", "--help"])


def below(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    for key, command in group.commands.items():
        yield f"{name} {key}", command
        if isinstance(command, click.Group):
            yield from below(command, f"{name} {key}")


def first_sentence(command: click.Command) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split()).rstrip(".")


def options(command: click.Command, name: str) -> Iterator[str]:
    """Each with its help; formed here and not by click, whose forms change between versions."""
    for parameter in command.get_params(context(command, name)):
        if isinstance(parameter, click.Option) and not parameter.hidden:
            names = ", ".join(sorted(parameter.opts, key=len))
            takes = "" if parameter.is_flag else " " + (parameter.metavar or metavar(parameter.type))
            default = f"  [default: {parameter.default}]" if parameter.show_default is True else ""
            yield from (".TP", f".B {roff(names + takes)}", roff(" ".join((parameter.help or "").split()) + default))


def metavar(kind: click.ParamType) -> str:
    if isinstance(kind, click.Choice):
        return "|".join(str(getattr(c, "value", c)) for c in kind.choices)
    return "NUMBER" if isinstance(kind, (type(click.INT), type(click.FLOAT))) else "PATH" if isinstance(kind, click.Path) else "TEXT"


def paragraphs(text: str) -> Iterator[str]:
    """Blocks that begin with click's mark ``\\b`` keep their lines."""
    for block in re.split(r"\n\s*\n", text.strip()):
        kept = block.split("\n")
        yield ".PP"
        if kept[0].strip() == "\b":
            yield ".nf"
            yield from (roff(line) for line in kept[1:])
            yield ".fi"
        else:
            yield roff(" ".join(block.split()))


def roff(text: str) -> str:
    """`text` as plain characters: nothing in it is a request or an escape."""
    made = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("~", "\\(ti").replace("^", "\\(ha")
    return "\\&" + made if made.startswith((".", "'")) else made


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
