"""File names on the command line: the check of one on a hung file system does not hold the command up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ray_rl_debug.bounded.calls import within

CHECK_S = 5.0


class PatientPath(click.Path):
    """As `click.Path`; where no answer comes in time, a file that must be there is an error, any other name is taken as it is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        check = super().convert
        try:
            return within(CHECK_S, lambda: check(value, param, ctx))
        except TimeoutError:
            if self.exists:
                self.fail(f"{value}: its file system does not answer", param, ctx)
            return Path(value)
