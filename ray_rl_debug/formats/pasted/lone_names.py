"""Names of machines that stand alone over the stacks of each: ``m10``, below it a block of code, ``m11``, the next one."""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted.events import Head

_MACHINE = re.compile(r"[A-Za-z_-]{1,32}\d{1,5}[.\w-]{0,60}$")
_PARTS = ("gpu", "cuda", "card", "device", "npu", "actor", "replica")
"""What is numbered and is no machine."""
MAX_BYTES = 4 << 20
_LONE = re.compile(
    rb"\n[ *_#=>`\[-]{0,60}(?P<stem>[A-Za-z][A-Za-z_-]{0,30})(?P<sign>[ :/\[#]{0,2})(?P<number>\d{1,5})"
    rb"(?P<rest>[.\w-]{0,60})[ *_#=<:`\]-]{0,60}\r?(?=\n|\Z)"
)
"""It begins with a plain byte, for which a search is much faster than for the beginning of a line."""
_NO_MACHINES = frozenset(
    "step iter iteration epoch round run look take try trial dump sample test case part fig figure table layer block exp rank ranks tp dp pp ep cp"
    " snapshot attempt pass option experiment section example issue day hour minute second point item note level size batch seed answer update edit"
    " v t stack frame thread pid job task phase stage version attempt file line question problem".split()
)
"""What people number that is no machine, or that other readers know."""


def find(text: bytes) -> frozenset[str]:
    """The names: those that differ in their number alone, two of them or more."""
    found: dict[str, dict[str, str]] = {}
    for one in _LONE.finditer(b"\n" + text[:MAX_BYTES]):
        stem, sign, number = one["stem"].decode(), one["sign"].decode(), one["number"].decode()
        if stem.strip("_-").lower() not in _NO_MACHINES:
            found.setdefault(stem + sign, {})[number] = name_in(f"{stem}{sign}{number}{one['rest'].decode()}")
    return frozenset(name for of_stem in found.values() if len(of_stem) > 1 for name in of_stem.values())


def head_of(name: str) -> Head:
    """``m10`` is a machine; ``GPU 3``, ``Actor[3]`` and ``cuda:3`` are a part of a program."""
    if _MACHINE.match(name) and ("-" in name or not name.lower().startswith(_PARTS)):
        return Head(level="label", node=name)
    return Head(level="label", label=name, is_new=True)


def is_no_machine(stem: str) -> bool:
    """Do people number what is called so, and is it no machine?"""
    return stem.strip("_-").lower() in _NO_MACHINES


def name_in(text: str) -> str:
    """A line without the signs around a name."""
    return text.strip(" *_#=<>:`[]-")
