"""The last name that the writer gave to the stacks that follow."""

from __future__ import annotations

import msgspec

from ray_rl_debug.formats.pasted.events import Head

FOLLOWS_WITHIN = 10
"""A name counts for a stack that begins within so many lines."""
BELONG_WITHIN = 3
"""Names so close to each other are one name: a rank, below it the command with the pid."""


class Label:
    """What was said, and where."""

    def __init__(self) -> None:
        self._head: Head | None = None
        self._line = -FOLLOWS_WITHIN
        self._is_used = False

    def held(self, number: int) -> Head | None:
        """The name for a stack that begins in this line."""
        return self._head if self._head is not None and self._head.is_new and number - self._line <= FOLLOWS_WITHIN else None

    @property
    def node(self) -> str | None:
        """The machine that was named last: it counts for all that follows."""
        return self._head.node if self._head is not None else None

    def is_above(self, number: int) -> bool:
        """Does the name stand in another line than this one?"""
        return self._line != number

    def is_near(self, number: int) -> bool:
        """Was something named in the last few lines?"""
        return number - self._line <= 6

    def set(self, head: Head, number: int) -> None:
        """Somebody is named in this line. A machine is named for all that follow, until another is."""
        held = self.held(number)
        if held is not None and not self._is_used and number - self._line <= BELONG_WITHIN and not (head.ranks and held.ranks):
            head = msgspec.structs.replace(
                head,
                pid=head.pid or held.pid,
                ranks=head.ranks or (() if head.label and held.label else held.ranks),  # numbers of one name are not another's
                node=head.node or held.node,
                label=head.label or held.label,
                title=head.title or (held.title if not head.label and not head.ranks else None),
                count=head.count or (held.count if head.pid is None and not head.ranks else None),
                said=head.said or held.said,
                is_new=head.is_new or held.is_new,
            )
        elif head.node is None and self._head is not None and self._head.node:
            head = msgspec.structs.replace(head, node=self._head.node)
        self._head, self._line, self._is_used = head, number, False

    def use(self) -> None:
        """A stack has taken it; only the machine is kept."""
        node = self._head.node if self._head is not None else None
        self._head = Head(level="label", node=node) if node else None

    def keep(self, head: Head) -> None:
        """It counts for the next stack too."""
        self._head, self._is_used = head, True
