"""A reward function of the user, given as ``module:function`` or ``file.py:function``: called with the prompt's record and the text of an answer."""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ray_rl_debug.endpoints.prompts import Prompt
from ray_rl_debug.model.errors import UsageError
from ray_rl_debug.rollouts.answers import Answer

Reward = Callable[[Mapping[str, Any], str], float]
_HINT = "write --reward MODULE:FUNCTION or FILE.py:FUNCTION, with FUNCTION(record, text) that returns a number"


def load_reward(name: str) -> Reward:
    """The function; importing it runs the user's own file.

    Raises:
        UsageError: it is not there.
    """
    where, _, function = name.rpartition(":")
    if not where or not function:
        raise UsageError(f"--reward {name!r} names no function", hint=_HINT)
    try:
        module = _from_file(Path(where)) if where.endswith(".py") else _from_path(where)
        found = getattr(module, function)
    except Exception as e:  # the user's own code may raise anything
        raise UsageError(f"--reward {name}: {type(e).__name__}: {e}", hint=_HINT) from e
    if not callable(found):
        raise UsageError(f"--reward {name} is no function", hint=_HINT)
    return found  # type: ignore[no-any-return]


def _from_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _from_path(name: str) -> Any:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(name)


def with_rewards(answers: Iterable[Answer], reward: Reward, prompts: Mapping[str, Prompt]) -> list[Answer]:
    """The answers with their rewards.

    Raises:
        UsageError: the function fails, or returns no finite number.
    """
    done = []
    for a in answers:
        if a.error is None and a.text is not None and a.key in prompts:
            try:
                value = float(reward(prompts[a.key].data, a.text))
            except Exception as e:
                raise UsageError(f"the reward of prompt {a.key} fails: {type(e).__name__}: {e}", hint=_HINT) from e
            if not math.isfinite(value):
                raise UsageError(f"the reward of prompt {a.key} is {value}", hint=_HINT)
            a = msgspec.structs.replace(a, reward=value)
        done.append(a)
    return done
