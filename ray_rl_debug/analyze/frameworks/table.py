"""The form of a framework's table."""

from __future__ import annotations

import msgspec


class Role(msgspec.Struct, frozen=True):
    """What actors of a class are in the run."""

    class_name: str
    role: str
    example: str
    """A process title or actor name."""


class Phase(msgspec.Struct, frozen=True):
    """What the run is doing while a function is on a stack."""

    function: str
    phase: str
    example: str
    """A process title, or a frame as py-spy shows it."""


class Framework(msgspec.Struct, frozen=True):
    """The names of one framework."""

    name: str
    version: str
    """Read from and tried with this version; older and newer ones share most names."""
    roles: tuple[Role, ...]
    phases: tuple[Phase, ...]
