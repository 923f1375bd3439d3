"""Our command lines in documents and help, and whether the real command line takes them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click

from ray_rl_debug.commands.cli import cli

_ENDS = frozenset("&& || | ; > >> < ( ) &".split())


def in_shell(text: str) -> Iterator[list[str]]:
    """Arguments of each ``rayrl-debug`` in lines of a shell, whatever runs it (``srun``, ``ray job submit --``, a virtual environment)."""
    for line in text.replace("\\\n", " ").splitlines():
        reader = shlex.shlex(line, posix=True, punctuation_chars=True)
        reader.whitespace_split = True
        words = list(reader)
        for at, word in enumerate(words):
            if word.rsplit("/", 1)[-1] == "rayrl-debug":
                rest = words[at + 1 :]
                yield rest[: next((n for n, w in enumerate(rest) if w in _ENDS), len(rest))]


def in_markdown(text: str) -> Iterator[list[str]]:
    """Those in shell blocks and in code spans of a document."""
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield from in_shell(block)
    for span in re.findall(r"`([^`\n]*\brayrl-debug [^`\n]*)`", without_blocks(text)):
        yield from in_shell(span.replace("\\|", "|"))


def options_in_markdown(text: str) -> Iterator[str]:
    """Options that stand alone in a code span: ``--stop-job``."""
    yield from re.findall(r"`(--?[a-z][\w-]*)(?: [A-Z]+)?`", without_blocks(text))


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def trouble(arguments: list[str], command: click.Command = cli, name: str = "rayrl-debug") -> str | None:
    """Why our command line refuses these arguments; None when it takes them. Files need not exist, and arguments may be missing."""
    context = click.Context(command, info_name=name)
    try:
        values, rest, _ = command.make_parser(context).parse_args(list(arguments))
        for parameter in command.params:
            value = values.get(parameter.name or "")
            if isinstance(value, (str, tuple, list)) and value and not isinstance(parameter.type, click.Path):
                parameter.type_cast_value(context, value)
    except click.ClickException as e:
        return f"{name} {shlex.join(arguments)}: {e.format_message()}"
    if isinstance(command, click.Group) and rest:
        below = command.get_command(context, rest[0])
        return f"{name}: no command {rest[0]}" if below is None else trouble(rest[1:], below, f"{name} {rest[0]}")
    return f"{name}: {shlex.join(rest)} is too much" if rest else None


def commands(command: click.Command = cli, name: str = "rayrl-debug") -> Iterator[tuple[str, click.Command]]:
    """Every command and group, with the name that people type."""
    yield name, command
    if isinstance(command, click.Group):
        for key, below in command.commands.items():
            yield from commands(below, f"{name} {key}")


def all_options() -> frozenset[str]:
    """Every option of ours, long and short."""
    return frozenset(o for _, c in commands() for p in c.params for o in (*p.opts, *p.secondary_opts) if o.startswith("-")) | {"--help", "--version"}
