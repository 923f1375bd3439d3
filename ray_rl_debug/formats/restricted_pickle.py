"""Pickles of plain data, read without running anything they hold.

Two fences: every opcode is checked against the few that build plain data before anything is built, and no name can be looked up.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import NoReturn

from ray_rl_debug.model.errors import UnreadableFileError

MAX_OPCODES = 64_000_000
"""A Flight Recorder of 20,000 collectives of 200 tensors each has 42 million."""

_ALLOWED = frozenset(
    "PROTO FRAME STOP MARK POP POP_MARK DUP NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING"
    " SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 EMPTY_LIST APPEND APPENDS LIST EMPTY_TUPLE"
    " TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT SETITEM SETITEMS EMPTY_SET ADDITEMS PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET".split()
)
_STORES = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise UnreadableFileError(f"the pickle wants to load {module}.{name}; only plain data is read")

    def persistent_load(self, pid: object) -> NoReturn:
        raise UnreadableFileError("the pickle refers to data outside of it")


def load_plain(data: bytes) -> object:
    """The numbers, texts, lists, tuples, sets and mappings of a pickle.

    Raises:
        UnreadableFileError: cut off, damaged, too large, or more than plain data.
    """
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data), 1):
            if opcode.name not in _ALLOWED:
                raise UnreadableFileError(f"the pickle holds {opcode.name}; only plain data is read")
            # The memo is an array as long as its highest index: a few bytes could ask for gigabytes.
            if count > MAX_OPCODES or (opcode.name in _STORES and int(str(argument)) > count):
                raise UnreadableFileError("the pickle is not one that Python or torch writes")
        return _Plain(io.BytesIO(data)).load()
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
