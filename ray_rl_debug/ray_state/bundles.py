"""Resources as people ask for them, and the bundle of a placement group that they are asked of.

Ray renames what is asked of a bundle: ``CPU_group_0_<id>`` for one bundle, ``CPU_group_<id>`` for any bundle of the group, and
``bundle_group_...`` as a mark (Ray's documentation of placement groups).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

import msgspec

_OF_GROUP = re.compile(r"(.+)_group_(?:(\d+)_)?([0-9a-f]{36})")
"""Ids of groups have 18 bytes; resources of users may be called ``gpu_group_0``."""
_MARK = "bundle"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What an actor or task needs to run."""

    resources: dict[str, float]
    """Plain names: ``CPU``, ``GPU``, own ones."""
    placement_group_id: str | None = None
    bundle: int | None = None
    """Of the group; None where any of them will do."""


def public(resources: Mapping[str, float] | None) -> dict[str, float]:
    """What a node or bundle has under the names that people ask for, without those that Ray makes itself."""
    return {k: round(v, 4) for k, v in (resources or {}).items() if not k.startswith("node:") and "_group_" not in k}


def asked(resources: Mapping[str, float] | None) -> Asked:
    """Plain amounts of what Ray's tables list, and where they are to come from. Who asks for the same has the same object."""
    return _asked(tuple((resources or {}).items()))


@functools.lru_cache(maxsize=1024)
def _asked(resources: tuple[tuple[str, float], ...]) -> Asked:
    found: dict[str, float] = {}
    group: str | None = None
    bundle: int | None = None
    for name, amount in resources:
        part = _OF_GROUP.fullmatch(name)
        if part is None:
            if not name.startswith("node:"):
                found[name] = round(amount, 4)
            continue
        group = part[3]
        bundle = int(part[2]) if part[2] is not None else bundle
        if part[1] != _MARK:
            found[part[1]] = round(amount, 4)
    return Asked(resources=found, placement_group_id=group, bundle=bundle)
