"""Pickles of plain data, read without running anything they hold.

Two fences: every opcode is checked against the few that build plain data before anything is built, and no name can be looked up. Objects of known
classes can be read as values of our own: names are then looked up in a table that the caller gives, and nowhere else.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from ray_rl_debug.model.errors import UnreadableFileError

MAX_OPCODES = 64_000_000
"""A Flight Recorder of 20,000 collectives of 200 tensors each has 42 million."""

_ALLOWED = frozenset(
    "PROTO FRAME STOP MARK POP POP_MARK DUP NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING"
    " SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 EMPTY_LIST APPEND APPENDS LIST EMPTY_TUPLE"
    " TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT SETITEM SETITEMS EMPTY_SET ADDITEMS PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET".split()
)
_OBJECTS = frozenset("GLOBAL STACK_GLOBAL REDUCE BUILD NEWOBJ".split())
"""What builds objects; only with a table of names."""
_STORES = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))


class _Plain(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, names: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(file)
        self._names = names

    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        found = self._names.get(f"{module}.{name}")
        if found is None:
            raise UnreadableFileError(f"the pickle wants to load {module}.{name}; only plain data is read")
        return found

    def persistent_load(self, pid: object) -> NoReturn:
        raise UnreadableFileError("the pickle refers to data outside of it")


def load_plain(data: bytes, names: Mapping[str, Callable[..., Any]] | None = None) -> object:
    """The numbers, texts, lists, tuples, sets and mappings of a pickle.

    Args:
        names: By ``module.name``, what stands for a foreign class or function. These are called with what the pickle says: they must be harmless with
            any arguments and any state.

    Raises:
        UnreadableFileError: cut off, damaged, too large, or more than plain data.
    """
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data), 1):
            if opcode.name not in _ALLOWED and not (names and opcode.name in _OBJECTS):
                raise UnreadableFileError(f"the pickle holds {opcode.name}; only plain data is read")
            # The memo is an array as long as its highest index: a few bytes could ask for gigabytes.
            if count > MAX_OPCODES or (opcode.name in _STORES and int(str(argument)) > count):
                raise UnreadableFileError("the pickle is not one that Python or torch writes")
        return _Plain(io.BytesIO(data), names or {}).load()
    except UnreadableFileError:
        raise
    except (
        pickle.UnpicklingError,
        ValueError,
        EOFError,
        IndexError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
        MemoryError,
    ) as e:
        raise UnreadableFileError(f"not a whole pickle: {e}") from e
