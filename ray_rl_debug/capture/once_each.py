"""The nodes of a capture put together: what several of them saw belongs to one."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ray_rl_debug.model.snapshot import Node


def once_each(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Raylets that share a machine (a test cluster) share the GCS process and the logs of the session: the first node keeps them."""
    seen: set[object] = set()

    def is_new(*key: object) -> bool:
        if None in key or key not in seen:
            seen.add(key)
            return True
        return False

    result = []
    for node in nodes:
        machine = (node.boot_id, node.pid_namespace)
        processes = tuple(p for p in node.processes if is_new(*machine, p.pid))
        lines = tuple(line for line in node.log_lines if is_new(*machine, line.file, line.line_number))
        result.append(msgspec.structs.replace(node, processes=processes, log_lines=lines))
    return tuple(result)
