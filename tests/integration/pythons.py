"""Which other Pythons are on this machine."""

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
_PLACES = (
    "~/.pyenv/versions/{v}.*/bin/python3",
    "~/.local/share/uv/python/cpython-{v}.*/bin/python3",
    "$RUNNER_TOOL_CACHE/Python/{v}.*/x64/bin/python3",
)


@functools.cache
def find_python(version: str) -> str | None:
    """The path of a CPython of a minor version such as ``3.12``; None when there is none."""
    if "{}.{}".format(*sys.version_info[:2]) == version:
        return sys.executable
    found = [shutil.which(f"python{version}")]
    for place in _PLACES:
        pattern = Path(os.path.expandvars(place.format(v=version))).expanduser()
        if "$" not in str(pattern):
            found += sorted(str(path) for path in Path("/").glob(str(pattern)[1:]))
    return next((path for path in found if path and _is(path, version)), None)


def _is(path: str, version: str) -> bool:
    question = "import sys, asyncio; print(*sys.version_info[:2], sys.implementation.name, sep='.')"
    answer = subprocess.run([path, "-c", question], capture_output=True, text=True, timeout=30, check=False)
    return answer.stdout.strip() == f"{version}.cpython"
