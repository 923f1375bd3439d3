"""What the frameworks call their processes and what they do: names of classes and functions as data, each with the version it was read from
and an example as it is seen in the field. Rules and analysis ask the merged tables; nothing else knows these names.
"""

from __future__ import annotations

from ray_rl_debug.analyze.frameworks import agentlightning, areal, verl
from ray_rl_debug.analyze.frameworks.table import Framework

FRAMEWORKS: tuple[Framework, ...] = (verl.TABLE, areal.TABLE, agentlightning.TABLE)

ROLE_OF_CLASS: dict[str, str] = {row.class_name: row.role for table in FRAMEWORKS for row in table.roles}
"""Role by class of actor."""

PHASE_OF_FUNCTION: dict[str, str] = {row.function: row.phase for table in FRAMEWORKS for row in table.phases}
"""Phase by bare name of function or method."""
