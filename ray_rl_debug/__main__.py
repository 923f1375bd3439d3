"""``python -m ray_rl_debug`` is ``rayrl-debug``."""

from __future__ import annotations

import sys

from ray_rl_debug.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
