"""Asyncio tasks of other processes, read from outside through their memory.

From the edge in: `memory` (bounded reads), `elf` (symbols of a loaded image), `layout` (offsets per CPython version), `objects` (types, strings,
containers), `runtime` (version check, interpreters, threads), `lines`, `chains` (coroutines), `awaited` and `descriptors` (what is waited for),
`tasks` (asyncio's registries), `remote_inspection` (what CPython 3.14 tells), `reader` (one process), `asked` (what a prepared process tells
itself), `attach` (all processes of a node, twice).
"""

from ray_rl_debug.collect.async_tasks.attach import AsyncRead, attach_async_tasks, read_all_async_tasks
from ray_rl_debug.collect.async_tasks.reader import read_async_tasks

__all__ = ["AsyncRead", "attach_async_tasks", "read_all_async_tasks", "read_async_tasks"]
