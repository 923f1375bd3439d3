"""``python -m ray_rl_debug`` is ``rayrl-debug``."""

from __future__ import annotations

import sys

from ray_rl_debug.commands.early import remember_signals


def main() -> int:
    """Run the command line of this process; Ctrl-C is safe from here on, before anything else is imported."""
    remember_signals()
    from ray_rl_debug.commands.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
