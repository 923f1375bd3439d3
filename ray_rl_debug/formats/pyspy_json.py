"""The JSON of ``py-spy dump``: a list of threads."""

from __future__ import annotations

import msgspec


class RawLocal(msgspec.Struct):
    """One local variable as py-spy prints it; ``addr`` is the address of the Python object."""

    name: str
    addr: int = 0
    repr: str | None = None


class RawFrame(msgspec.Struct):
    name: str
    filename: str
    line: int = 0
    module: str | None = None
    """Of a frame of C: the program or library that it is in."""
    locals: list[RawLocal] | None = None


class RawThread(msgspec.Struct):
    frames: list[RawFrame]
    thread_name: str | None = None
    os_thread_id: int | None = None
    active: bool | None = None
    owns_gil: bool | None = None
