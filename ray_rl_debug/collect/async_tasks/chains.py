"""Await chains: from a task's coroutine inwards to the object that is finally awaited."""

from __future__ import annotations

import struct
from typing import Literal

from ray_rl_debug.collect.async_tasks.layout import Layout
from ray_rl_debug.collect.async_tasks.lines import find_line
from ray_rl_debug.collect.async_tasks.memory import BadRead, Memory
from ray_rl_debug.collect.async_tasks.objects import PyType
from ray_rl_debug.collect.async_tasks.runtime import Runtime
from ray_rl_debug.formats.stack_table import short_file
from ray_rl_debug.model.snapshot import AwaitFrame

MAX_DEPTH = 2000
KEPT_OUTER, KEPT_INNER = 40, 120
"""Frames kept of a deeper chain."""
MAX_STACK = 1 << 12
Kind = Literal["frame", "hop", "wrapped", "cython", "end"]
_NATIVE = ("PyCoro_Type", "PyGen_Type", "PyAsyncGen_Type")
_HOPS = frozenset({"coroutine_wrapper", "async_generator_asend", "async_generator_athrow", "anext_awaitable", "FutureIter"})
"""Awaitables written in C that only hold the next one, in the first field after the header."""
_HOP = 16
UNTAGGED = -8
"""3.14 marks references in frames by their low bits."""
Mark = tuple[int, bytes]
"""An address and the bytes that stood there: the same later means that the coroutine did not move."""


class ChainLink:
    """One coroutine of a chain with what its frame's variables need to be found."""

    __slots__ = ("address", "frame", "is_running", "locals_at", "place", "stack_at", "stack_size")

    def __init__(self, address: int, frame: AwaitFrame, is_running: bool, place: Suspension | None = None, locals_at: int = 0) -> None:
        self.address, self.frame, self.is_running, self.place, self.locals_at = address, frame, is_running, place, locals_at
        self.stack_at = self.stack_size = 0
        """The value stack; its last word is what the frame awaits. Empty where the frame is not suspended."""


class Code:
    """A code object."""

    __slots__ = ("file", "first_line", "lines", "local_names", "local_places", "name", "start")

    def __init__(self, name: str, file: str, first_line: int, lines: bytes, start: int, local_names: tuple[int, ...]) -> None:
        self.name, self.file, self.first_line, self.lines, self.start, self.local_names = name, file, first_line, lines, start, local_names
        self.local_places: dict[str, int] | None = None


class Suspension:
    """One instruction of one code object: shared by all coroutines that are suspended there."""

    __slots__ = ("awaits", "code", "frame")

    def __init__(self, code: Code, frame: AwaitFrame, awaits: bool) -> None:
        self.code, self.frame, self.awaits = code, frame, awaits


class Chains:
    """Follows await chains in one process."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.memory, self.objects, self.layout = runtime, runtime.memory, runtime.objects, runtime.layout
        self._native = {address for name in _NATIVE if (address := runtime.image.find(name))}
        self._kinds: dict[int, Kind] = {}
        self._codes: dict[int, Code] = {}
        self._places: dict[tuple[int, int], Suspension] = {}
        self._read_frame = _Frames_3_10(self) if self.layout.version == (3, 10) else _Frames(self)

    def forget(self) -> None:
        """Drop what was decoded, since its addresses may mean something else by now."""
        self._codes.clear()
        self._places.clear()

    def follow(self, coroutine: int, marks: list[Mark]) -> tuple[list[ChainLink], int]:
        """Links from the outermost in, and the address of what is awaited at the end (0: nothing). Adds to `marks` what was relied on."""
        links: list[ChainLink] = []
        at, seen = coroutine, set[int]()
        word, kinds = self.memory.word, self._kinds
        while at and at not in seen and len(seen) < MAX_DEPTH:
            if at & 7:
                raise BadRead("no object")
            seen.add(at)
            type_at = word(at + 8)
            kind = kinds.get(type_at) or self._classify(type_at)
            if kind == "frame":
                link, at = self._read_frame(at, marks)
                if link is None:
                    break
                links.append(link)
            elif kind == "hop":
                marks.append((at, self.memory.read(at, _HOP + 8)))
                at = word(at + _HOP)
            elif kind == "wrapped":
                at = self.objects.attributes(at).get("_GeneratorWrapper__wrapped", 0)
            elif kind == "cython":
                link, at = self._cython(at, marks)
                links.append(link)
            else:
                marks.append((at + 8, type_at.to_bytes(8, "little")))
                return links, at
        return links, 0

    def _classify(self, type_at: int) -> Kind:
        kind = self.objects.type_at(type_at)
        if kind is None:
            raise BadRead("no object")
        found: Kind = "end"
        if type_at in self._native:
            found = "frame"
        elif kind.name in _HOPS:
            found = "hop"
        elif kind.name == "_GeneratorWrapper":
            found = "wrapped"
        elif _yield_from(self, kind) is not None:
            found = "cython"
        self._kinds[type_at] = found
        return found

    def _cython(self, at: int, marks: list[Mark]) -> tuple[ChainLink, int]:
        """A coroutine of Cython: its type publishes where it keeps what it awaits; its names follow in the next fields."""
        kind = self.objects.type_of(at)
        offset = _yield_from(self, kind) if kind else None
        if kind is None or offset is None:
            raise BadRead("no coroutine")
        marks.append((at + offset, self.memory.read(at + offset, 24)))
        inner, _, name_at = self.memory.words(at + offset, 3)
        try:
            name = self.objects.string(name_at)
        except BadRead:
            name = "?"
        running = self.objects.member(kind, "cr_running") or self.objects.member(kind, "gi_running")
        is_running = bool(running and self.memory.read(at + running, 1)[0])
        frame = AwaitFrame(function=name)
        return ChainLink(at, frame, is_running), inner

    def code(self, address: int) -> Code:
        """A code object."""
        found = self._codes.get(address)
        if found is None:
            found = self._codes[address] = self._read_code(address)
        return found

    def _read_code(self, address: int) -> Code:
        memory, layout, objects = self.memory, self.layout, self.objects
        kind = objects.type_of(address)
        if kind is None or kind.name != "code":
            raise BadRead("no code object")
        is_old = layout.version == (3, 10)
        return Code(
            name=objects.string(memory.word(address + layout.code_qualname)),
            file=short_file(objects.string(memory.word(address + layout.code_file)))[0],
            first_line=struct.unpack("<i", memory.read(address + layout.code_first_line, 4))[0],
            lines=objects.bytes_at(memory.word(address + layout.code_lines)),
            start=memory.word(address + layout.code_start) + 32 if is_old else address + layout.code_start,
            local_names=objects.sequence(memory.word(address + layout.code_local_names)),
        )

    def place(self, code_at: int, instruction: int, name: str | None = None) -> Suspension:
        """The place of an instruction: 3.10 in code units, later by address."""
        found = self._places.get((code_at, instruction))
        if found is None:
            code = self.code(code_at)
            is_old = self.layout.version == (3, 10)
            offset = 2 * instruction if is_old else instruction - code.start
            if not -2 <= offset < 1 << 24:
                raise BadRead("instruction outside of its code")
            line = find_line(self.layout.version, code.lines, code.first_line, max(offset, 0))
            frame = AwaitFrame(function=name or code.name, file=code.file, line=line or code.first_line)
            found = self._places[code_at, instruction] = Suspension(code, frame, self._awaits(code, instruction))
        return found

    def _awaits(self, code: Code, instruction: int) -> bool:
        """Does this instruction, where the frame is suspended, stand in an ``await`` or ``yield from``?"""
        if self.layout.version == (3, 10):
            return instruction >= 0 and self.memory.read(code.start + 2 * (instruction + 1), 1)[0] in self.layout.resume
        if self.layout.awaiting is not None:
            return True
        operation, argument = self.memory.read(instruction + 2, 2)
        # tracing may have put an instruction of its own there
        return (operation in self.layout.resume and argument >= 2) or operation > 240

    def marked_word(self, address: int, marks: list[Mark]) -> int:
        """A word that must not change while we read."""
        raw = self.memory.read(address, 8)
        marks.append((address, raw))
        return int.from_bytes(raw, "little") & UNTAGGED

    def suspended(self, generator: int) -> ChainLink | None:
        """Where a generator stands that is no part of a chain; None of what is none, or runs."""
        kind = self.objects.type_of(generator)
        if kind is None or self._classify(self.memory.word(generator + 8)) != "frame":
            return None
        return self._read_frame(generator, [])[0]

    def variable(self, link: ChainLink, name: str) -> int:
        """Address of a local variable of a frame of Python's own library; 0 when there is none of that name."""
        if link.place is None or not link.locals_at:
            return 0
        code = link.place.code
        if code.local_places is None:
            code.local_places = {self.objects.string(name_at): i for i, name_at in enumerate(code.local_names)}
        place = code.local_places.get(name)
        if place is None:
            return 0
        value = self.memory.word(link.locals_at + 8 * place) & UNTAGGED
        kind = self.objects.type_of(value)
        return self.memory.word(value + 16) if kind is not None and kind.name == "cell" else value

    def stack(self, link: ChainLink) -> tuple[int, ...]:
        """The value stack of a suspended frame below what it awaits: what ``async with`` and ``for`` keep while their bodies run."""
        if link.stack_size < 2:
            return ()
        return tuple(word & UNTAGGED for word in self.memory.words(link.stack_at, link.stack_size - 1))


_RUNNERS = frozenset({("_run_coro", "anyio/_core/_tasks.py"), ("_run_wrapped_task", "anyio/_backends/_asyncio.py")})
"""Function and file of what only runs the coroutine that it was given, as a task of its own."""


def _begun(frames: tuple[AwaitFrame, ...]) -> tuple[AwaitFrame, ...]:
    """A chain from the coroutine on that somebody has begun as a task."""
    runs = len(frames) > 1 and (frames[0].function.rpartition(".")[2], frames[0].file) in _RUNNERS
    return frames[1:] if runs else frames


def shortened(frames: tuple[AwaitFrame, ...]) -> tuple[AwaitFrame, ...]:
    """A chain without what only runs it, and without the middle of what is deeper than we keep."""
    frames = _begun(frames)
    if len(frames) <= KEPT_OUTER + KEPT_INNER:
        return frames
    left_out = AwaitFrame(function=f"... {len(frames) - KEPT_OUTER - KEPT_INNER} frames left out")
    return (*frames[:KEPT_OUTER], left_out, *frames[-KEPT_INNER:])


def _yield_from(chains: Chains, kind: PyType) -> int | None:
    offset = chains.objects.member(kind, "cr_await")
    if offset is None:
        offset = chains.objects.member(kind, "gi_yieldfrom")
    return offset if offset is not None and 16 <= offset < kind.basicsize - 16 else None


class _Frames:
    """Reads frames of 3.11 and later, which stand inside their coroutine."""

    def __init__(self, chains: Chains) -> None:
        layout: Layout = chains.layout
        self._memory: Memory = chains.memory
        self._chains, self._layout = chains, layout
        frame = layout.generator_frame
        self._has_pointer = layout.version >= (3, 14)
        assert layout.generator_state is not None
        self._start = layout.generator_state
        code, instruction, stack = frame + layout.frame_code, frame + layout.frame_instruction, frame + layout.frame_stack
        self._fields = struct.Struct(
            f"<b{code - self._start - 1}xQ{instruction - code - 8}xQ{stack - instruction - 8}x{'q' if self._has_pointer else 'i'}"
        )
        self._locals = frame + layout.frame_locals

    def __call__(self, at: int, marks: list[Mark]) -> tuple[ChainLink | None, int]:
        layout = self._layout
        raw = self._memory.read(at + self._start, self._fields.size)
        state, code_at, instruction, top = self._fields.unpack(raw)
        if state > 0:
            marks.append((at + self._start, raw[:1]))
            return None, 0
        marks.append((at + self._start, raw))
        chains = self._chains
        place = chains.place(code_at & UNTAGGED, instruction)
        locals_at = at + self._locals
        if self._has_pointer:
            top = (top - locals_at) >> 3
        if state not in layout.suspended or not 0 < top <= MAX_STACK:
            return ChainLink(at, place.frame, state == 0, place, locals_at), 0
        count = len(place.code.local_names)
        link = ChainLink(at, place.frame, False, place, locals_at)
        link.stack_at, link.stack_size = locals_at + 8 * count, top - count
        if not (place.awaits if layout.awaiting is None else state == layout.awaiting):
            return link, 0
        return link, chains.marked_word(locals_at + 8 * (top - 1), marks)


class _Frames_3_10:
    """Reads frames of 3.10, which are objects of their own."""

    def __init__(self, chains: Chains) -> None:
        self._chains, self._memory = chains, chains.memory
        # value stack 64, depth 80, last instruction 96, state 108
        self._fields = struct.Struct("<Q8xi12xi8xb")

    def __call__(self, at: int, marks: list[Mark]) -> tuple[ChainLink | None, int]:
        memory, layout, chains = self._memory, self._chains.layout, self._chains
        frame_at = memory.word(at + layout.generator_frame)
        marks.append((at + layout.generator_frame, memory.read(at + layout.generator_frame, 8)))
        if not frame_at:
            return None, 0
        kind = chains.objects.type_of(frame_at)
        if kind is None or kind.name != "frame":
            raise BadRead("no frame")
        raw = memory.read(frame_at + 64, self._fields.size)
        values, depth, last, state = self._fields.unpack(raw)
        marks.append((frame_at + 64, raw))
        if state > 0:
            return None, 0
        code_at = chains.marked_word(frame_at + layout.frame_code, marks)
        name = chains.objects.string(chains.marked_word(at + layout.generator_qualname, marks))
        place = chains.place(code_at, last, name)
        frame = place.frame if place.frame.function == name else AwaitFrame(function=name, file=place.frame.file, line=place.frame.line)
        locals_at = frame_at + layout.frame_locals
        if state not in layout.suspended or not 0 < depth <= MAX_STACK:
            return ChainLink(at, frame, state == 0, place, locals_at), 0
        link = ChainLink(at, frame, False, place, locals_at)
        link.stack_at, link.stack_size = values, depth
        return link, chains.marked_word(values + 8 * (depth - 1), marks) if place.awaits else 0
