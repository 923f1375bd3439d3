"""``rayrl-debug rollout``: what the inference engine and the agents produce, looked at outside of the training run."""

from __future__ import annotations

import click

from ray_rl_debug.commands.rollout_compare import compare
from ray_rl_debug.commands.rollout_try import try_agent

GROUP_EPILOG = """\b
Examples:
  rayrl-debug rollout compare before.jsonl after.jsonl
  rayrl-debug rollout try my_agent.py:MyAgent
"""


@click.group(name="rollout", epilog=GROUP_EPILOG)
def rollout_group() -> None:
    """Compare, try, check, record and serve rollouts."""


VERBS: tuple[click.Command, ...] = (compare, try_agent)
"""One file each: ``rollout_compare.py`` holds ``compare``."""
for _verb in VERBS:
    rollout_group.add_command(_verb)
