"""Snapshots and reports as files: JSON, gzip for snapshots; unknown fields are ignored, wrong files say so."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import TypeVar

import msgspec

from ray_rl_debug.model import report as report_model
from ray_rl_debug.model import snapshot as snapshot_model
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.foreign_text import as_text, map_text
from ray_rl_debug.model.report import Report
from ray_rl_debug.model.snapshot import Node, Snapshot

MAX_DECODED_BYTES = 2 << 30
"""A snapshot of 1,000 ranks is some tens of MB; more than this is a mistake or an attack (a gzip bomb)."""

T = TypeVar("T")

_encoder = msgspec.json.Encoder(order="deterministic")


class _SchemaOnly(msgspec.Struct):
    schema: str = ""


def encode(value: msgspec.Struct) -> bytes:
    """JSON, fields in their declared order, mappings sorted; text that is no text is spelled out."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:  # what came past all doors must not cost the rest
        return _encoder.encode(map_text(value, as_text))


def pack(value: object) -> bytes:
    """MessagePack, for messages between our own processes; text that is no text is spelled out, as in `encode`."""
    try:
        return msgspec.msgpack.encode(value)
    except UnicodeEncodeError:
        return msgspec.msgpack.encode(map_text(value, as_text))


def encode_compressed(value: msgspec.Struct) -> bytes:
    """Gzipped JSON; the same value always gives the same bytes."""
    return gzip.compress(encode(value), compresslevel=6, mtime=0)


def inflate(data: bytes, *, limit: int = MAX_DECODED_BYTES) -> bytes:
    """Plain bytes of ``data``, whether gzipped or not.

    Raises:
        UnreadableFileError: cut off, damaged, or larger than ``limit`` bytes when unpacked.
    """
    if not data.startswith(b"\x1f\x8b"):
        return data
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        plain = unpacker.decompress(data, limit + 1)
    except zlib.error as e:
        raise UnreadableFileError(f"damaged gzip data ({e})") from e
    if len(plain) > limit:
        raise UnreadableFileError(f"more than {limit >> 20} MiB when unpacked")
    if not unpacker.eof:
        raise UnreadableFileError("cut off: the gzip data ends too early")
    return plain


def decode_snapshot(data: bytes) -> Snapshot:
    """A snapshot from JSON or gzipped JSON.

    Raises:
        UnreadableFileError: not JSON, not a snapshot, or of a newer schema.
    """
    return _decode(data, Snapshot, snapshot_model.SCHEMA)


def decode_report(data: bytes) -> Report:
    """A report from JSON; raises `UnreadableFileError` like `decode_snapshot`."""
    return _decode(data, Report, report_model.SCHEMA)


def decode_node(data: bytes) -> Node:
    """One node's facts as its agent sent them."""
    try:
        return msgspec.json.decode(inflate(data), type=Node)
    except (msgspec.ValidationError, msgspec.DecodeError) as e:
        raise UnreadableFileError(f"not a node's facts: {e}") from e


def read_snapshot(path: Path) -> Snapshot:
    """Read a snapshot file; the message of the error names the file."""
    try:
        return decode_snapshot(path.read_bytes())
    except OSError as e:
        raise UnreadableFileError(f"cannot read {path}: {e.strerror}") from e
    except UnreadableFileError as e:
        raise UnreadableFileError(f"{path}: {e}") from e


def _decode(data: bytes, kind: type[T], schema: str) -> T:
    plain = inflate(data)
    try:
        found = msgspec.json.decode(plain, type=_SchemaOnly).schema
        if found != schema:
            raise UnreadableFileError(f"schema {found!r} is not {schema!r}" if found else "this is not one of our files (no schema)")
        return msgspec.json.decode(plain, type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError) as e:
        raise UnreadableFileError(f"not valid: {e}") from e
