"""Process groups from memory: our own, in which a module like torch's is laid out."""

from __future__ import annotations

import ctypes
import os
import sys
import types
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from ray_rl_debug.collect import torch_groups
from ray_rl_debug.collect.async_tasks.layout import LAYOUTS
from ray_rl_debug.collect.async_tasks.memory import Mapping, ProcessSource, Spent
from ray_rl_debug.model.snapshot import TorchGroup

pytestmark = pytest.mark.skipif(sys.version_info[:2] not in LAYOUTS, reason="the layout of this Python is not known")


class Group(ctypes.Structure):
    """As in objects of pybind11, the word behind the head leads to what it holds."""

    _fields_: ClassVar = [("words", ctypes.c_uint64 * 12)]
    __hash__ = object.__hash__


class World:
    def __init__(self, default: Group | None) -> None:
        self._default_pg = default


class OwnMemory(ProcessSource):
    """With a library of torch among its mappings."""

    def mappings(self) -> list[Mapping]:
        return [*super().mappings(), Mapping(0, 1, 0, 0, "/site-packages/torch/lib/libtorch_python.so")]


class Torch:
    """The module and its C++ objects."""

    def __init__(self) -> None:
        self.names: dict[Group, str] = {}
        self.ranks: dict[Group, dict[int, int]] = {}
        self.kept: list[Any] = []

    def group(self, name: str, members: Sequence[int], rank: int, description: str = "undefined", counters: int = 1) -> Group:
        store = ctypes.create_string_buffer(64)
        text = ctypes.create_string_buffer(description.encode())
        words = [1, *[1] * counters, ctypes.addressof(store), rank | len(members) << 32, 0, ctypes.addressof(text), len(description)]
        group = Group((*words, *[0] * (12 - len(words))))
        self.kept += [store, text]
        self.names[group] = name
        self.ranks[group] = {member: place for place, member in enumerate(members)}
        return group

    def module(self, default: Group | None) -> types.ModuleType:
        found: Any = types.ModuleType(torch_groups.MODULE)
        found._pg_names, found._pg_group_ranks, found._group_count = self.names, self.ranks, 7
        found._world, found._default_pg_init_method = World(default), "tcp://10.0.0.1:29500"
        return found


@pytest.fixture
def torch() -> Torch:
    return Torch()


def read(monkeypatch: pytest.MonkeyPatch, module: types.ModuleType) -> Any:
    monkeypatch.setitem(sys.modules, torch_groups.MODULE, module)
    source = OwnMemory(os.getpid())
    try:
        return torch_groups.read_from(source, deadline_s=30)
    finally:
        source.close()


def test_names_members_and_the_own_place_are_read(torch: Torch, monkeypatch: pytest.MonkeyPatch) -> None:
    default = torch.group("0", range(8), 5)
    pair = torch.group("3", [1, 5], 1, "tp")
    found = read(monkeypatch, torch.module(default))
    assert found.groups == (
        TorchGroup(name="0", size=8, ranks=((0, 7, 1),), rank=5, is_default=True, address=id(default)),
        TorchGroup(name="3", size=2, ranks=((1, 5, 4),), rank=1, description="tp", address=id(pair)),
    )
    assert found.groups[1].members == (1, 5)
    assert (found.made, found.init_method) == (7, "tcp://10.0.0.1:29500")


def test_older_torch_has_two_reference_counts(torch: Torch, monkeypatch: pytest.MonkeyPatch) -> None:
    found = read(monkeypatch, torch.module(torch.group("0", range(4), 2, "default_pg", counters=2)))
    assert (found.groups[0].rank, found.groups[0].description) == (2, "default_pg")


def test_an_unknown_layout_gives_no_rank(torch: Torch, monkeypatch: pytest.MonkeyPatch) -> None:
    found = read(monkeypatch, torch.module(torch.group("0", range(4), 2, counters=4)))
    assert (found.groups[0].name, found.groups[0].rank) == ("0", None)


def test_a_program_without_groups_has_none(torch: Torch, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, torch.module(None)) is None


def test_torch_that_keeps_its_groups_otherwise_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, types.ModuleType(torch_groups.MODULE)) is None


def test_without_torch_the_interpreter_is_not_even_looked_for() -> None:
    class NoTorch(ProcessSource):
        def pread(self, size: int, address: int) -> bytes:
            raise AssertionError("nothing is to be read")

        def mappings(self) -> list[Mapping]:
            return [m for m in super().mappings() if "torch" not in m.path]

    source = NoTorch(os.getpid())
    try:
        assert torch_groups.read_from(source, deadline_s=30) is None
    finally:
        source.close()


@pytest.mark.parametrize(
    ("ranks", "runs"),
    [
        ([], ()),
        ([4], ((4, 4, 1),)),
        ([0, 1, 2, 3], ((0, 3, 1),)),
        ([0, 8, 16, 24, 1], ((0, 24, 8), (1, 1, 1))),
        ([3, 2, 1, 7, 9], ((3, 1, -1), (7, 9, 2))),
        ([0, 1, 3], ((0, 1, 1), (3, 3, 1))),
    ],
)
def test_members_are_kept_as_runs(ranks: list[int], runs: tuple[tuple[int, int, int], ...]) -> None:
    assert torch_groups._runs(ranks) == runs
    assert TorchGroup(name="1", size=len(ranks), ranks=runs).members == tuple(ranks)


def test_processes_for_which_no_time_is_left_are_told() -> None:
    read = torch_groups.read_all_torch_groups([os.getpid(), 1], total_s=0.0)
    assert read == ({}, (os.getpid(), 1))


def test_who_takes_too_long_is_told_and_the_next_is_still_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def read(pid: int, **_: object) -> None:
        asked.append(pid)
        if pid == 7:
            raise Spent("deadline")

    monkeypatch.setattr(torch_groups, "read_torch_groups", read)
    assert torch_groups.read_all_torch_groups([7, 8], total_s=5.0) == ({}, (7,))
    assert asked == [7, 8]
