"""Which other Pythons are on this machine."""

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
LISTED = "RAYRL_DEBUG_PYTHONS"
"""Environment variable: more interpreters, divided by colons; they are preferred."""
_PLACES = (
    "~/.pyenv/versions/{v}.*/bin/python3",
    "~/.local/share/uv/python/cpython-{v}.*/bin/python3",
    "$RUNNER_TOOL_CACHE/Python/{v}.*/x64/bin/python3",
)


@functools.cache
def find_python(version: str, module: str | None = None) -> str | None:
    """The path of a CPython of a minor version such as ``3.12``, one that has `module`; None when there is none."""
    listed = [path for path in os.environ.get(LISTED, "").split(":") if path]
    found = [*listed, sys.executable, shutil.which(f"python{version}")]
    for place in _PLACES:
        pattern = Path(os.path.expandvars(place.format(v=version))).expanduser()
        if "$" not in str(pattern):
            found += sorted(str(path) for path in Path("/").glob(str(pattern)[1:]))
    return next((path for path in found if path and _version(path, module) == version), None)


@functools.cache
def _version(path: str, module: str | None) -> str | None:
    """``3.12`` for a CPython that has asyncio and this module."""
    question = f"import sys, asyncio, {module or 'sys'}; print(*sys.version_info[:2], sys.implementation.name, sep='.')"
    answer = subprocess.run([path, "-c", question], capture_output=True, text=True, timeout=30, check=False)
    version, _, kind = answer.stdout.strip().rpartition(".")
    return version if kind == "cpython" else None
