"""``rayrl-debug rollout``: what the inference engine and the agents produce, looked at outside of the training run."""

from __future__ import annotations

import click

from ray_rl_debug.commands.rollout_check import check
from ray_rl_debug.commands.rollout_compare import compare
from ray_rl_debug.commands.rollout_record import record
from ray_rl_debug.commands.rollout_serve import serve
from ray_rl_debug.commands.rollout_try import try_agent

GROUP_EPILOG = """\b
Examples:
  rayrl-debug rollout compare prompts.jsonl \\
    --engine http://127.0.0.1:8000/v1 --reference model/
  rayrl-debug rollout try my_agent.py:MyAgent
  rayrl-debug rollout check batch_data.pt
  rayrl-debug rollout record http://127.0.0.1:8000/v1 -o answers.jsonl
  rayrl-debug rollout serve answers.jsonl --port 8000
"""


@click.group(name="rollout", epilog=GROUP_EPILOG)
def rollout_group() -> None:
    """Compare, try, check, record and serve rollouts."""


VERBS: tuple[click.Command, ...] = (compare, try_agent, check, record, serve)
"""One file each: ``rollout_compare.py`` holds ``compare``."""
for _verb in VERBS:
    rollout_group.add_command(_verb)
