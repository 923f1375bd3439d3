"""``rayrl-debug --version``: what a report of a bug needs to say of an environment.

Nothing of Ray or torch is imported for it, so it answers at once, and where they are broken.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator

import click

from ray_rl_debug import __version__

PACKAGES = ("ray", "torch", "vllm", "sglang", "verl", "areal", "agentlightning", "grpcio", "click", "msgspec", "opentelemetry-sdk")
"""Those that are there are named."""


def version_lines() -> Iterator[str]:
    """The first line is our name and version alone, as other programs print it."""
    yield f"rayrl-debug {__version__}"
    yield f"Python {platform.python_version()} ({platform.python_implementation()}), {sys.executable}"
    yield ", ".join(f"{name} {found}" for name in PACKAGES if (found := _installed(name)) is not None) or "no package that matters is installed"
    yield f"py-spy: {_pyspy()}"
    libc = " ".join(platform.libc_ver()).strip() or "libc unknown"
    yield f"{platform.system()} {platform.release()} {platform.machine()}, {libc}"


def _installed(name: str) -> str | None:
    from importlib import metadata  # a sixth of the time of --help

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _pyspy() -> str:
    from ray_rl_debug.collect.pyspy import find_pyspy

    version, path = _installed("py-spy"), find_pyspy()
    return f"{version or 'of another package'} at {path}" if path is not None else "not found"


def print_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    """The option's callback: print and leave."""
    if value and not context.resilient_parsing:
        click.echo("\n".join(version_lines()))
        context.exit()
