"""Starts programs of ours in any interpreter: only this package is lent to it, nothing else of our environment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ray_rl_debug

BOOT = """
import importlib, importlib.util, sys
root = sys.argv.pop(1)
spec = importlib.util.spec_from_file_location("ray_rl_debug", root + "/__init__.py", submodule_search_locations=[root])
package = importlib.util.module_from_spec(spec)
sys.modules["ray_rl_debug"] = package
spec.loader.exec_module(package)
module = importlib.import_module(sys.argv.pop(1))
module.main()
"""


def start(
    module: str, arguments: Sequence[str], *, python: str | None = None, env: Mapping[str, str] | None = None, **how: Any
) -> subprocess.Popen[bytes]:
    """A child in a session of its own (Ctrl-C at our terminal is ours), with a pipe as standard input: when that ends, so does the child.

    Raises:
        OSError: no such interpreter.
    """
    root = str(Path(ray_rl_debug.__file__).parent)
    argv = [python or sys.executable, "-c", BOOT, root, module, *arguments]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True, env=dict(env) if env is not None else None, **how)
