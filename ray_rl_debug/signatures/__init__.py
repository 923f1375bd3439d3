"""Known error lines: one YAML file each, in a folder per layer, with lines that must match and lines that must not.

Ids are RRD600 to RRD699, then RRD6100 onwards; none is used twice. `load` reads them all once.
"""

from __future__ import annotations

import functools
from pathlib import Path

import msgspec
import yaml

LAYERS = (
    "slurm",
    "kubernetes",
    "os",
    "ray",
    "nccl",
    "torch",
    "cuda",
    "accelerators",
    "vllm",
    "sglang",
    "verl",
    "areal",
    "agent-lightning",
    "triton",
    "tensordict",
    "data",
    "config",
    "tracking",
)
EFFECTS = ("critical", "cascade", "info")
"""``critical`` may support a finding about the process that wrote it; ``cascade`` never accuses its writer; ``info`` explains."""


class Signature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One known error line."""

    id: str
    title: str
    layer: str
    effect: str
    literal: str | tuple[str, ...]
    """Plain text that every matching line holds (one of several): found first, because that is fast."""
    pattern: str
    """Regular expression searched in the line; named groups are the facts it holds."""
    cause: str
    remedy: str
    source: str
    """Program and version, or the guide, that the wording comes from."""
    matches: tuple[str, ...]
    not_: tuple[str, ...] = msgspec.field(name="not")
    late: bool = False
    """It comes long after what brought it about: another critical line in the same logs is nearer to it."""
    one_try: str | None = None
    """Regular expression of such a line that is written at each of several tries: once alone it ends nothing."""
    over: str | None = None
    """Regular expression of a later line that tells that it has passed, such as a connection that is restored."""
    slug: str = ""
    """Name of the file."""

    @property
    def literals(self) -> tuple[str, ...]:
        return (self.literal,) if isinstance(self.literal, str) else self.literal


@functools.cache
def load(folder: Path = Path(__file__).parent) -> tuple[Signature, ...]:
    """All signatures, by id.

    Raises:
        msgspec.ValidationError: a file lacks a field or has one too many.
        yaml.YAMLError: a file is not YAML.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found = []
    for path in folder.glob("*/*.yaml"):
        plain = yaml.load(path.read_bytes(), Loader=loader)
        found.append(msgspec.convert({**plain, "slug": path.stem}, type=Signature))
    return tuple(sorted(found, key=lambda s: (len(s.id), s.id)))


def find(signature_id: str) -> Signature | None:
    """The signature of an id, in upper or lower case."""
    return _by_id().get(signature_id.upper())


@functools.cache
def _by_id() -> dict[str, Signature]:
    return {s.id: s for s in load()}
