"""Equal stacks are one: each distinct stack of a snapshot is an object of its own, and what is known of it is found once.

Ranks of one program stand at few places, however many they are. What holds for a stack, whoever is met there, is kept with it, for as long
as the view that it was made for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import msgspec

from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.model.snapshot import Frame, Node

Key = TypeVar("Key", bound=Hashable)
Known = TypeVar("Known")


class Once(dict[Key, Known]):
    """What a pure function says of each key, asked once: ``phases[name]``."""

    def __init__(self, find: Callable[[Key], Known]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, key: Key) -> Known:
        found = self[key] = self._find(key)
        return found


class Stack(msgspec.Struct, frozen=True, eq=False):
    """One distinct stack; equal only to itself."""

    whole: tuple[Frame, ...]
    """Innermost first."""
    frames: tuple[Frame, ...]
    """The same without those of a parent that forked the process."""
    known: dict[Hashable, Any] = msgspec.field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        return len(self.frames) == len(self.whole)

    def once(self, find: Callable[[tuple[Frame, ...]], Known]) -> Known:
        """What `find`, a pure function, tells of the frames: asked once."""
        if find not in self.known:
            self.known[find] = find(self.frames)
        found: Known = self.known[find]
        return found


NOWHERE = Stack(whole=(), frames=())
"""Of an index that names no stack (a damaged file)."""


class Stacks:
    """The distinct stacks of some nodes."""

    def __init__(self) -> None:
        self._frames: dict[Frame, int] = {}
        self._stacks: dict[tuple[int, ...], Stack] = {}
        self._of_node: dict[int, tuple[Node, tuple[Stack, ...]]] = {}

    def get(self, node: Node, index: int) -> Stack:
        """The stack with this index on a node."""
        stacks = self.of(node)
        return stacks[index] if 0 <= index < len(stacks) else NOWHERE

    def all(self) -> tuple[Stack, ...]:
        """Those that were asked for, without those of one node more than once."""
        return tuple(self._stacks.values())

    def of(self, node: Node) -> tuple[Stack, ...]:
        """All stacks of a node, in its own order. Frames that the node does not have are left out."""
        known = self._of_node.get(id(node))
        if known is None:
            numbers = [self._frames.setdefault(frame, len(self._frames)) for frame in node.frames]
            known = self._of_node[id(node)] = (node, tuple(self._stack(node, numbers, stack) for stack in node.stacks))
        return known[1]

    def _stack(self, node: Node, numbers: list[int], indexes: tuple[int, ...]) -> Stack:
        good = [i for i in indexes if 0 <= i < len(numbers)]
        key = tuple([numbers[i] for i in good])
        found = self._stacks.get(key)
        if found is None:
            frames = tuple([node.frames[i] for i in good])
            found = self._stacks[key] = Stack(whole=frames, frames=frames[: _first_of_parent(frames)])
        return found


def stack_frames(node: Node, stack: int) -> tuple[Frame, ...]:
    """The frames of one interned stack, innermost first; empty when the index is wrong (a damaged file)."""
    indexes = node.stacks[stack] if 0 <= stack < len(node.stacks) else ()
    frames = tuple(node.frames[i] for i in indexes if 0 <= i < len(node.frames))
    return frames[: _first_of_parent(frames)]


def _first_of_parent(frames: tuple[Frame, ...]) -> int:
    """Position of the frame in which the parent forked this process; the length where it was not forked.

    A child that multiprocessing has forked carries the stack of its parent on. What the parent did at that moment is no place of the child.
    """
    for i in range(1, len(frames)):
        forks = frames[i].file.endswith("multiprocessing/popen_fork.py") and short_name(frames[i].function) == "_launch"
        if forks and short_name(frames[i - 1].function) == "_bootstrap":
            return i
    return len(frames)
