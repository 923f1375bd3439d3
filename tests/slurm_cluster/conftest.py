"""A real Slurm of two nodes for the tests of this folder, each node in namespaces of its own; started and stopped here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slurm_cluster.cluster import SlurmCluster
from slurm_cluster.jobs import cancel_all, running


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmCluster]:
    yield from running()


@pytest.fixture(autouse=True)
def nothing_stays(slurm: SlurmCluster) -> Iterator[None]:
    yield
    cancel_all(slurm)
