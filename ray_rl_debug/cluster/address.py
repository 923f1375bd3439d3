"""Which cluster: the address given, or the one that runs on this machine. Several are a question, not a guess."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ray_rl_debug.collect.choices import describe_choices
from ray_rl_debug.collect.discover import find_raylets
from ray_rl_debug.collect.procfs import PROC
from ray_rl_debug.model.errors import NoClusterError, SeveralClustersError, UsageError

_ADDRESS = re.compile(r"^(\[[0-9a-fA-F:]+\]|[\w.-]+):(\d{1,5})$")


def find_address(explicit: str | None, env: Mapping[str, str], proc: Path = PROC) -> str:
    """The GCS address ``host:port`` to use.

    Args:
        explicit: What the user gave; None or ``auto`` looks around.
        env: The environment; ``RAY_ADDRESS`` counts when nothing was given.
        proc: The process table.

    Raises:
        UsageError: not an address.
        NoClusterError: nothing given and no cluster here.
        SeveralClustersError: nothing given and several clusters here.
    """
    given = explicit or env.get("RAY_ADDRESS")
    if given and given not in ("auto", "local"):
        if given.startswith(("http://", "https://", "ray://")):
            scheme = given.partition(":")[0]
            raise UsageError(f"{given} is a {scheme} address", hint="give the GCS address that ray start printed, such as 10.0.0.1:6379")
        found = _ADDRESS.match(given)
        if found is None or not 0 < int(found[2]) < 65536:
            raise UsageError(f"{given!r} is not an address", hint="write it as HOST:PORT, such as 10.0.0.1:6379")
        return given
    raylets = find_raylets(proc)
    addresses = sorted({a for a in raylets.values() if a})
    if not addresses:
        raise NoClusterError("no Ray cluster runs on this machine, and none was named")
    if len(addresses) > 1:
        raise SeveralClustersError(f"{len(addresses)} Ray clusters run on this machine", hint=f"choose one: {describe_choices(raylets, proc)}")
    return addresses[0]
