"""The base of all claims of a report, and whom they speak of."""

from __future__ import annotations

import msgspec


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the report's structures: immutable, fields by name."""


class Who(Claim, frozen=True, kw_only=True):
    """Somebody a finding speaks of: a process, or something named only by its label."""

    label: str
    """How people know it: ``actor/3``, ``vllm_server_0_0``, ``placement group verl_pool``, ``tool.example:443``."""
    node: str | None = None
    pid: int | None = None
    actor: str | None = None
    """Ray's actor name."""
    class_: str | None = msgspec.field(default=None, name="class")
    task: str | None = None
    world: str | None = None
    rank: int | None = None
    thread: str | None = None
    role: str | None = None
