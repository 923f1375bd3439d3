"""Times on a command line: ``90s``, ``40m``, ``2h``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

# a generic class in click 8.4 and later only
if TYPE_CHECKING:
    _Seconds = click.ParamType[float]
else:
    _Seconds = click.ParamType

_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*(s|sec|m|min|h|d)?", re.IGNORECASE)
_SECONDS = {"s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class Duration(_Seconds):
    """A time in seconds; a bare number counts as seconds."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        found = _TIME.fullmatch(str(value).strip())
        if found is None:
            self.fail(f"{value!r} is no time; write 90s, 40m or 2h", param, ctx)
        return float(found[1]) * _SECONDS[(found[2] or "s").lower()]
