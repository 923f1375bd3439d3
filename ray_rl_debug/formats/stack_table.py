"""Stacks of one node, each frame and each stack kept once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from ray_rl_debug.model.snapshot import Frame
from ray_rl_debug.model.source_line import SourceLine

_PACKAGES = re.compile(r"(?:.*/)?(?:site|dist)-packages/(.+)")
_SOURCE_TREES = re.compile(
    r".*/(torch/(?:distributed|nn|autograd|utils|cuda|optim|_dynamo|_inductor|multiprocessing)/.+"
    r"|ray/(?:_private|_common|cloudpickle|dag|experimental/(?:channel|collective)|llm/_internal|serve/_private|util/(?:collective|tracing))/.+"
    r"|ray/(?:actor|remote_function)\.py|ray/_raylet\.pyx|torchdata/(?:stateful_dataloader|nodes)/.+)"
)
"""Libraries that were built from source, or lie on PYTHONPATH: folders that no program of a user's has."""
_STANDARD_LIBRARY = re.compile(r".*/lib(?:64|/[\w.-]{1,40})?/python[23]\.\d+t?/(.+)")
_OF_ONE_LIBRARY = {
    "distributed_c10d.py": "torch/distributed/distributed_c10d.py",
    "c10d_logger.py": "torch/distributed/c10d_logger.py",
    "_functional_collectives.py": "torch/distributed/_functional_collectives.py",
    "_flat_param.py": "torch/distributed/fsdp/_flat_param.py",
    "fully_sharded_data_parallel.py": "torch/distributed/fsdp/fully_sharded_data_parallel.py",
    "shm_broadcast.py": "vllm/distributed/device_communicators/shm_broadcast.py",
    "multiproc_executor.py": "vllm/v1/executor/multiproc_executor.py",
    "p2p_communication.py": "megatron/core/pipeline_parallel/p2p_communication.py",
    "stateful_dataloader.py": "torchdata/stateful_dataloader/stateful_dataloader.py",
    "default_worker.py": "ray/_private/workers/default_worker.py",
    "partition_parameters.py": "deepspeed/runtime/zero/partition_parameters.py",
}
"""Names that people write without the folder, because only one library has such a file."""
_OF_THREADS = frozenset({"threading.py", "queue.py"})
_NEAR = 5
"""Frames of these files between a wait and who called it, at most."""
_OF_ONE_FUNCTION = {
    ("_process_input_queue", "core.py"): "vllm/v1/engine/core.py",
    ("run_busy_loop", "core.py"): "vllm/v1/engine/core.py",
    ("run_engine_core", "core.py"): "vllm/v1/engine/core.py",
    ("event_loop_normal", "scheduler.py"): "sglang/srt/managers/scheduler.py",
    ("event_loop_overlap", "scheduler.py"): "sglang/srt/managers/scheduler.py",
    ("broadcast_pyobj", "common.py"): "sglang/srt/utils/common.py",
    ("point_to_point_pyobj", "common.py"): "sglang/srt/utils/common.py",
    ("_create_c10d_store", "rendezvous.py"): "torch/distributed/rendezvous.py",
    ("_env_rendezvous_handler", "rendezvous.py"): "torch/distributed/rendezvous.py",
    ("_try_get_data", "dataloader.py"): "torch/utils/data/dataloader.py",
    ("_get_data", "dataloader.py"): "torch/utils/data/dataloader.py",
    ("_next_data", "dataloader.py"): "torch/utils/data/dataloader.py",
    ("_engine_run_backward", "graph.py"): "torch/autograd/graph.py",
    ("synchronize", "streams.py"): "torch/cuda/streams.py",
    ("get_objects", "worker.py"): "ray/_private/worker.py",
    ("recv_multipart", "socket.py"): "zmq/sugar/socket.py",
    ("recv_pyobj", "socket.py"): "zmq/sugar/socket.py",
}
"""Names of files that many programs have, where the function tells the library."""


_NOT_READ = SourceLine()


class StackTable:
    """Frames and stacks of one node, each kept once."""

    def __init__(self) -> None:
        self._frames: dict[tuple[str, str, int], int] = {}
        self._stacks: dict[tuple[int, ...], int] = {}

    def add(self, places: Iterable[tuple[str, str, int]]) -> int:
        """Index of the stack of these (function, file name, line), innermost first."""
        stack = tuple([self._frames.setdefault(place, len(self._frames)) for place in places])
        return self._stacks.setdefault(stack, len(self._stacks))

    def number(self, place: tuple[str, str, int]) -> int | None:
        """Index of a frame; None where no stack has it."""
        return self._frames.get(place)

    def frames(self, lines: Mapping[int, SourceLine] = MappingProxyType({})) -> tuple[Frame, ...]:
        """All frames; of some of them what their source tells."""
        found = []
        for number, (function, file, line) in enumerate(self._frames):
            told = lines.get(number, _NOT_READ)
            short = _OF_ONE_FUNCTION.get((function.rsplit(".", 1)[-1], file)) or short_file(file)[0]
            found.append(
                Frame(
                    function=function,
                    file=short,
                    line=line or None,
                    calls=told.calls,
                    apart=told.apart,
                    looks=told.looks,
                    brings=told.brings,
                    goes_round=told.goes_round,
                    ended_by=told.ended_by,
                    gives_up=told.gives_up,
                    wants=told.wants,
                    under=told.under or None,
                )
            )
        return tuple(found)

    def telling(self) -> tuple[int | None, ...]:
        """By stack the frame whose source tells for what it waits: the innermost, or the one that called a wait of the standard library's threads."""
        places = tuple(self._frames)
        return tuple(_telling(stack, places) for stack in self._stacks)

    def places(self) -> tuple[tuple[str, int], ...]:
        """File and line of each frame."""
        return tuple([(file, line) for _, file, line in self._frames])

    def end(self, stack: int) -> str | None:
        """The innermost function of a stack."""
        frames = tuple(self._stacks)[stack]
        return tuple(self._frames)[frames[0]][0] if frames else None

    def stacks(self) -> tuple[tuple[int, ...], ...]:
        return tuple(self._stacks)


def _telling(stack: tuple[int, ...], places: Sequence[tuple[str, str, int]]) -> int | None:
    for number in stack[:_NEAR]:
        short, is_standard = short_file(places[number][1])
        if not is_standard:
            return number
        if short not in _OF_THREADS:
            return None
    return None


def short_file(path: str) -> tuple[str, bool]:
    """The path below site-packages or the standard library, else as it is; and whether it is the standard library's."""
    if found := _PACKAGES.fullmatch(path):
        return found[1], False
    if found := _STANDARD_LIBRARY.fullmatch(path):
        return found[1], True
    if found := _SOURCE_TREES.fullmatch(path):
        return found[1], False
    return _OF_ONE_LIBRARY.get(path, path), False
