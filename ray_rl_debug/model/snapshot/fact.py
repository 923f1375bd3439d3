"""The base of all stored structures, and the gap: a fact that was not measured."""

from __future__ import annotations

import msgspec


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Base of all stored structures: immutable, fields by name, defaults not written.

    Facts are trees, so the garbage collector need not follow them; of a large run there are millions.
    """


class Gap(Fact, frozen=True, kw_only=True):
    """A fact we tried to get and did not."""

    id: str
    """An id of `ray_rl_debug.model.gaps`, such as ``RRD902``."""
    where: str
    """``node`` or ``node/pid`` or ``cluster``."""
    what: str
    """What is missing, e.g. ``stacks of 12 processes``."""
    reason: str
    remedy: str | None = None
    """The one command or setting that would close the gap."""
