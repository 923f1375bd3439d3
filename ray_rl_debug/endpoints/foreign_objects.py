"""Objects of verl, numpy and tensordict in saved batches, rebuilt as plain data without those packages."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ray_rl_debug.model.errors import UnreadableFileError

_NUMBERS = {"f8": "d", "f4": "f", "f2": "e", "i8": "q", "i4": "i", "i2": "h", "i1": "b", "u1": "B", "u2": "H", "u4": "I", "u8": "Q", "b1": "?"}
"""numpy's codes and those of `struct`."""
_ORDER = {"<": "<", ">": ">", "|": "<", "=": "<"}


class DataProto:
    """verl's batch: three values that its ``__getstate__`` gives."""

    state: tuple[Any, Any, Any] = (None, {}, {})

    def __setstate__(self, state: object) -> None:
        if not (isinstance(state, tuple) and len(state) == 3):
            raise UnreadableFileError("the file names a DataProto, but does not hold one")
        self.state = state


class DType:
    """numpy's description of one element."""

    def __init__(self, code: object = "", *_: object) -> None:
        self.code, self.order = str(code), "<"

    def __setstate__(self, state: object) -> None:
        if isinstance(state, tuple) and len(state) > 1:
            self.order = str(state[1])


class Array:
    """numpy's array as it stands in a pickle."""

    shape: tuple[int, ...] = ()
    dtype = DType()
    data: object = b""

    def __setstate__(self, state: object) -> None:
        if not (isinstance(state, tuple) and len(state) == 5 and isinstance(state[1], tuple) and isinstance(state[2], DType)):
            raise UnreadableFileError("an array of numpy is not as numpy writes it")
        _, self.shape, self.dtype, _, self.data = state

    def values(self) -> list[Any]:
        """All elements in one row.

        Raises:
            UnreadableFileError: an element that is neither a number nor an object.
        """
        if isinstance(self.data, list):
            return self.data
        code = _NUMBERS.get(self.dtype.code)
        if code is None or not isinstance(self.data, bytes):
            raise UnreadableFileError(f"an array of numpy holds {self.dtype.code!r}, not numbers or objects")
        count = len(self.data) // struct.calcsize(code)
        return list(struct.unpack(f"{_ORDER.get(self.dtype.order, '<')}{count}{code}", self.data[: count * struct.calcsize(code)]))


def _array(*_: object) -> Array:
    return Array()


def _size(values: Sequence[int] = ()) -> tuple[int, ...]:
    return tuple(values)


def _scalar(dtype: object, data: object = b"") -> object:
    found = Array()
    found.__setstate__((1, (), dtype, False, data if isinstance(data, bytes) else [data]))
    values = found.values()
    return values[0] if values else None


def _bytes(text: object = "", code: object = "latin1") -> bytes:
    """How protocol 2, which torch.save writes, spells bytes."""
    if not isinstance(text, str) or code != "latin1":
        raise UnreadableFileError("bytes of the DataProto are not as Python writes them")
    return text.encode("latin1", "replace")


NAMES: dict[str, Callable[..., Any]] = {
    "verl.protocol.DataProto": DataProto,
    "numpy.core.multiarray._reconstruct": _array,
    "numpy._core.multiarray._reconstruct": _array,
    "numpy.core.multiarray.scalar": _scalar,
    "numpy._core.multiarray.scalar": _scalar,
    "numpy.ndarray": Array,
    "numpy.dtype": DType,
    "torch.Size": _size,
    "_codecs.encode": _bytes,
}
"""What stands for the names in verl's pickles."""


class TensorDict:
    """Marks tensordict's class; its content is what `make` gets."""


def make(_: object, state: object) -> dict[str, Any]:
    """tensordict's ``_make_td``: the tensors by name."""
    inner = state.get("_tensordict") if isinstance(state, Mapping) else None
    if not isinstance(inner, Mapping):
        raise UnreadableFileError("a TensorDict is not as tensordict 0.1 to 0.15 writes it")
    return dict(inner)


def rebuild(metadata: object, storage: Any) -> dict[str, Any]:
    """tensordict's ``_rebuild_tensordict_files_consolidated``: tensors as pieces of one row of bytes."""
    import torch

    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("leaves"), Mapping):
        raise UnreadableFileError("a consolidated TensorDict is not as tensordict writes it")
    found: dict[str, Any] = {}
    for name, (dtype, shape, start, stop, _pad) in metadata["leaves"].items():
        kind = getattr(torch, str(dtype).removeprefix("torch."), None)
        if not isinstance(kind, torch.dtype):
            raise UnreadableFileError(f"a tensor of the TensorDict has the type {dtype!r}")
        if name.startswith("<"):
            continue  # rows of different lengths in parts; told as missing by the caller
        found[str(name)] = storage[start:stop].view(kind)[: math.prod(shape)].view(tuple(shape))
    return found


TENSOR_NAMES: dict[str, Callable[..., Any]] = {
    "tensordict._td.TensorDict": TensorDict,
    "tensordict._reductions._make_td": make,
    "tensordict._reductions._rebuild_tensordict_files_consolidated": rebuild,
}
"""What stands for tensordict's names in files of torch.save."""
