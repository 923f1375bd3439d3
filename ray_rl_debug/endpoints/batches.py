"""Batches that trainers saved, read without running anything in them: torch's ``weights_only`` for tensors, a list of allowed names for the rest.

AReaL users write ``torch.save(batch, FILE)``: a mapping of tensors, or a list of them. verl writes a pickle of its DataProto (``save_to_disk``) whose
tensors are again a file of torch.save, with tensordict's own wrapping; both wrappings are rebuilt here as plain mappings, so neither verl nor
tensordict has to be installed, and none of their code runs.
"""

from __future__ import annotations

import importlib
import io
import pickle
import zipfile
import zlib
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ray_rl_debug.endpoints.extras import need
from ray_rl_debug.endpoints.foreign_objects import NAMES, TENSOR_NAMES, Array, DataProto
from ray_rl_debug.endpoints.prompts import read_bytes
from ray_rl_debug.endpoints.recordings import Head, Recording
from ray_rl_debug.formats.restricted_pickle import load_plain
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.rollouts.batches import Batch, Field
from ray_rl_debug.rollouts.trajectories import answers_of

MAX_BYTES = 8 << 30
HINT = "torch.save a mapping of plain tensors, or verl's DataProto.save_to_disk"
DATA_PROTO = b"cverl.protocol\nDataProto\n"
"""How a pickle begins that holds one (protocol 2, which torch.save writes)."""
JAGGED = "torch._dynamo.decorators._DimRange"
"""torch 2.13 writes it into rows of different lengths (its jagged layout), and knows it for harmless only once its module is loaded."""
_VERL = {"responses", "prompts", "response_mask", "token_level_scores", "old_log_probs", "rollout_log_probs"}
_AREAL = {"loss_mask", "versions", "logprobs", "prox_logp"}


def is_batch(head: bytes) -> bool:
    """Does a file begin as torch.save (a zip) or a pickle does?"""
    return head.startswith((b"PK\x03\x04", b"\x80"))


def read_batch(path: Path) -> Batch:
    """The tensors of a saved batch, as plain rows.

    Raises:
        UnreadableFileError: cannot be opened, is cut off, or holds more than tensors and plain data.
    """
    data = read_bytes(path, MAX_BYTES)
    if not is_batch(data):
        raise UnreadableFileError(f"{path.name} was written neither by torch.save nor by DataProto.save_to_disk", hint=HINT)
    if data.startswith(b"PK"):
        inside = _data_proto_in(data)
        if inside is None:
            return _batch(load_tensors(data, path.name), {}, {}, path.name)
        data = inside
    found = load_plain(data, NAMES)
    if not isinstance(found, DataProto):
        raise UnreadableFileError(f"{path.name} is a pickle without a DataProto", hint=HINT)
    tensors, others, meta = found.state
    return _batch(_of_verl(tensors, path.name), _plain(others), _plain(meta), path.name, is_verl=True)


def _data_proto_in(data: bytes) -> bytes | None:
    """The pickle in a file of torch.save that holds one DataProto: its tensors are a file of their own in it, so torch has no part in the outer."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            name = next((n for n in file.namelist() if n.endswith("/data.pkl")), None)
            if name is None or file.getinfo(name).file_size > MAX_BYTES:
                return None
            found = file.read(name)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError, zlib.error):
        return None  # torch says what is wrong with it
    return found if DATA_PROTO in found[:200] else None


def load_tensors(data: bytes, name: str) -> Any:
    """What torch.save wrote, with torch's own restricted loader.

    Raises:
        UnreadableFileError: damaged, or anything but tensors and plain data in it.
    """
    torch = need("torch", "reading a saved batch")
    try:
        with torch.serialization.safe_globals([(stand_in, full) for full, stand_in in TENSOR_NAMES.items()]):
            try:
                return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
            except pickle.UnpicklingError:
                if JAGGED not in torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data)):
                    raise
                importlib.import_module(JAGGED.rpartition(".")[0])
                return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as e:
        unsafe = torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))
        more = f" ({', '.join(sorted(set(unsafe) - set(TENSOR_NAMES))[:3])})"
        raise UnreadableFileError(f"{name} holds more than tensors{more}; only tensors are read, nothing in it is run", hint=HINT) from e
    except (RuntimeError, EOFError, KeyError, ValueError, TypeError, AttributeError, IndexError, OSError) as e:
        first = (str(e).splitlines() or [type(e).__name__])[0][:200]
        raise UnreadableFileError(f"{name} is no whole file of torch.save: {first}") from e


def _of_verl(tensors: object, name: str) -> Any:
    if isinstance(tensors, bytes):
        return load_tensors(tensors, name)
    if isinstance(tensors, tuple) and len(tensors) == 3 and isinstance(tensors[2], Mapping):
        return {key: _of_numpy(value) for key, value in tensors[2].items()}
    return {}


def _of_numpy(value: object) -> Any:
    torch = need("torch", "reading a saved batch")
    if not (isinstance(value, tuple) and len(value) == 3 and isinstance(value[2], Array)):
        raise UnreadableFileError("a tensor of the DataProto is not as verl writes it", hint=HINT)
    kind = getattr(torch, str(value[0]), None)
    if not isinstance(kind, torch.dtype):
        raise UnreadableFileError(f"a tensor of the DataProto has the type {value[0]!r}", hint=HINT)
    return torch.tensor(value[2].values(), dtype=torch.uint8).view(kind).view(tuple(value[1]))


def _batch(found: Any, others: Mapping[str, Any], meta: Mapping[str, Any], name: str, *, is_verl: bool = False) -> Batch:
    parts = found if isinstance(found, (list, tuple)) else [found]
    if not parts or not all(isinstance(p, Mapping) for p in parts):
        raise UnreadableFileError(f"{name} holds no mapping of tensors", hint=HINT)
    tensors: dict[str, list[Any]] = {}
    notes = []
    torch = need("torch", "reading a saved batch")
    more: dict[str, Any] = dict(others)
    for part in parts:
        for key, value in part.items():
            if isinstance(value, torch.Tensor):
                tensors.setdefault(str(key), []).append(value)
            elif value is not None:
                more.setdefault(str(key), []).append(value) if len(parts) > 1 else more.setdefault(str(key), value)
    fields = {}
    for key, values in tensors.items():
        try:
            fields[key] = _field(key, values)
        except (RuntimeError, ValueError, TypeError) as e:
            notes.append(f"{key}: {(str(e).splitlines() or ['?'])[0][:200]}")
    if not fields and not notes and not is_verl:
        raise UnreadableFileError(f"{name} holds no tensors", hint=HINT)
    keys = set(fields)
    kind = "verl" if is_verl or len(keys & _VERL) > len(keys & _AREAL) else "AReaL" if keys & _AREAL else "unknown"
    return Batch(kind=kind, fields=fields, others={k: v for k, v in more.items() if isinstance(v, (list, tuple))}, meta=meta, notes=tuple(notes))


def _field(name: str, values: list[Any]) -> Field:
    rows: list[Any] = []
    for value in values:
        rows += list(value.unbind()) if value.dim() else [value.reshape(1)]
    lengths = {tuple(r.shape) for r in rows}
    first = values[0]
    shape = (len(rows), *(max(lengths) if lengths else ()))
    return Field(name=name, shape=shape, dtype=str(first.dtype).removeprefix("torch."), rows=tuple(map(_row, rows)), is_ragged=len(lengths) > 1)


def _row(value: Any) -> array[Any]:
    flat = value.detach().reshape(-1)
    is_number = flat.is_floating_point()
    return array("d" if is_number else "q", flat.double().tolist() if is_number else flat.long().tolist())


def _plain(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {}
    return {str(k): v.values() if isinstance(v, Array) else v for k, v in value.items()}


def as_recording(batch: Batch, path: Path) -> Recording:
    """The trajectories of a batch as answers.

    Raises:
        UnreadableFileError: it holds no tokens.
    """
    answers = answers_of(batch)
    if not answers:
        have = ", ".join(sorted(batch.fields)) or "no tensors"
        raise UnreadableFileError(f"{path.name} holds no tokens to compare ({have})", hint=f"see: rayrl-debug rollout check {path}")
    temperature = batch.meta.get("temperature")
    return Recording(
        head=Head(name=f"{batch.kind} batch", temperature=temperature if isinstance(temperature, (int, float)) else None), answers=answers
    )
