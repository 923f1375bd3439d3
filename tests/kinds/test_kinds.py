"""The command against programs of many kinds of waiting: the one who hangs them is named, and in their healthy twins nobody is.

``-m kinds`` runs them all, an hour and more; ``python -m kinds.lab`` runs some, as often as wanted, and keeps their snapshots.
"""

from __future__ import annotations

import pytest
from engines.tool import CHECKOUT
from kinds.lab import looks
from kinds.truth import MISSED, PROGRAMS

pytestmark = [pytest.mark.kinds, pytest.mark.timeout(600)]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("healthy", [False, True], ids=["hang", "healthy"])
def test_the_right_one_is_named_and_nobody_else(name: str, healthy: bool) -> None:
    rows = list(looks(PROGRAMS[name], healthy, 1, None, CHECKOUT))
    assert rows and (all(row.is_right for row in rows) or f"{name}-{'healthy' if healthy else 'hang'}" in MISSED), str(rows[0])
