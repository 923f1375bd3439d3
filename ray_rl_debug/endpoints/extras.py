"""Libraries that only rollouts need: imported when they are needed, with one clear sentence where they are missing."""

from __future__ import annotations

import importlib
from types import ModuleType

from ray_rl_debug.model.errors import MissingExtraError

EXTRA = "rollout"


def need(module: str, what_for: str) -> ModuleType:
    """The imported module.

    Raises:
        MissingExtraError: it is not installed, or breaks when it is imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as e:
        missing = e.name or module
        raise MissingExtraError(f"{what_for} needs the package {missing}", hint=f"pip install 'ray-rl-debug[{EXTRA}]'") from e
    except Exception as e:  # a broken mixture of torch and its companions raises anything
        raise MissingExtraError(f"{what_for} needs {module}, which is installed but breaks: {e}", hint=f"try: python -c 'import {module}'") from e
