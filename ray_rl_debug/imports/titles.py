"""Command lines in foreign stacks, cut down to what identifies a process."""

from __future__ import annotations

import os
import re

from ray_rl_debug.privacy.masking import mask

_SHOWN_ARGUMENTS = frozenset({"--role", "--rank", "--worker-index", "--local-rank", "--local_rank", "--node-rank", "--node_rank"})
_MAX_TITLE = 200
_ASSIGNED = re.compile(r"^([A-Za-z_]\w{0,60})=")


def safe_title(command: str) -> str:
    """The program and what identifies it; values of arguments, which may be secret, are dropped.

    Ray's titles (``ray::Class.method``) stay whole.
    """
    command = mask(" ".join(command.split()))
    if command.startswith(("ray::", "VLLM::", "sglang::")):
        return command[:_MAX_TITLE]
    kept: list[str] = []
    show_next = False
    for position, word in enumerate(command.split(" ")):
        option = word.split("=", 1)[0]
        is_script = word.endswith((".py", ".sh")) and "=" not in word and not word.startswith("-")
        if show_next:
            kept.append(word)
            show_next = False
        elif assigned := _ASSIGNED.match(word):
            kept += [f"{assigned[1]}=…"] if not kept else []
        elif position == 0 or is_script:
            kept.append(os.path.basename(word.rstrip("/")) or word)
        elif option in _SHOWN_ARGUMENTS or word == "-m":
            kept.append(word)
            show_next = "=" not in word
        elif word.startswith("--") and re.fullmatch(r"--[\w-]{2,40}", option):
            kept.append(option)
    return " ".join(kept)[:_MAX_TITLE]
