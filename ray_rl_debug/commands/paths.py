"""File names on the command line: the check of one on a hung file system does not hold the command up."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from ray_rl_debug.bounded.calls import within

CHECK_S = 5.0


class PatientPath(click.Path):
    """As `click.Path`; where no answer comes in time, a file that must be there is an error, any other name is taken as it is."""

    def __init__(self, *, one_of_many: bool = False, **of_click: Any) -> None:
        """`one_of_many`: what a shell's pattern brings along, a file that may not be read or a link that leads nowhere, is told when it is read."""
        super().__init__(**{"readable": not one_of_many, **of_click})
        self._takes_links = one_of_many

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        convert = super().convert

        def check() -> Any:
            if self._takes_links and os.path.islink(value) and not os.path.exists(value):
                return Path(value)
            return convert(value, param, ctx)

        try:
            return within(CHECK_S, check)
        except TimeoutError:
            if self.exists:
                self.fail(f"{value}: its file system does not answer", param, ctx)
            return Path(value)
