"""Lets verl's own trainer run on CPUs: a platform "cpu", and rollout servers that make up their tokens. verl loads it by VERL_USE_EXTERNAL_MODULES.

With ``REAL_ENGINE=1`` the replicas run a real vLLM. Only verl's own places for extensions are used. A word in the file that ``TROUBLE_FILE``
names makes it go wrong: ``generate`` (server 0 gives no answer) or ``step`` (rank ``TROUBLE_RANK``, 1 unless it is set, waits in its optimizer for a
disk that does not come); it goes on when the file is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import sys
import threading
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.distributed
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry

TOKENS = range(5, 200)
"""Ids of the little tokenizer that are text."""


def is_asked_for(trouble: str) -> bool:
    with contextlib.suppress(OSError):
        return Path(os.environ.get("TROUBLE_FILE", "/nowhere")).read_text() == trouble
    return False


class Device(types.ModuleType):
    """What verl asks of ``torch.cuda``, answered for CPUs."""

    ANSWERS: ClassVar[dict[str, Any]] = {
        "current_device": "cpu",
        "get_device_name": "CPU",
        "memory_allocated": 0,
        "max_memory_allocated": 0,
        "memory_reserved": 0,
        "max_memory_reserved": 0,
        "mem_get_info": (8 << 30, 16 << 30),
    }

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "get_rng_state":
            return lambda *_: torch.get_rng_state()
        if name == "set_rng_state":
            return lambda state, *_: torch.set_rng_state(state)
        if name in self.ANSWERS:
            return lambda *_, **__: self.ANSWERS[name]
        return getattr(torch.cpu, name, lambda *_, **__: None)


def _answering(answer: Any) -> Callable[..., Any]:
    return lambda _self, *_, **__: answer


def _platform() -> type[PlatformBase]:
    """The platform; methods that a CPU has no answer to give None."""
    properties = {"device_name": "cpu", "vendor_name": "cpu", "device_module": Device("cpu_device")}
    answers: dict[str, Any] = {
        "is_available": True,
        "is_platform_available": True,
        "current_device": "cpu",
        "device_count": 1,
        "get_device_capability": (None, None),
        "communication_backend_name": "gloo",
        "visible_devices_envvar": "CUDA_VISIBLE_DEVICES",
        "ray_resource_name": "GPU",
        "ray_noset_envvars": ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"],
        "is_ipc_supported": False,
        "rollout_env_vars": {},
        "get_device_uuid": "CPU-0",
        "nvtx_range": contextlib.nullcontext(),
    }
    body: dict[str, Any] = {name: property(lambda _self, value=value: value) for name, value in properties.items()}
    for name in {*PlatformBase.__abstractmethods__, *answers} - properties.keys():
        body[name] = _answering(answers.get(name))
    body["manual_seed"] = body["manual_seed_all"] = lambda _self, seed: torch.manual_seed(seed)
    body["ray_resource_options"] = lambda _self, count: {"num_gpus": count}
    return type("CpuPlatform", (PlatformBase,), body)


PlatformRegistry.register(platform="cpu")(_platform())


def made_up_replica() -> type:
    """verl's replica whose server runs no model."""
    import ray
    from verl.workers.rollout.replica import RolloutReplica, TokenOutput

    class vLLMHttpServer:
        def __init__(self, replica: int) -> None:
            self.replica = replica

        async def launch_server(self, *_: Any, **__: Any) -> bool:
            return True

        async def get_server_address(self) -> tuple[str, int]:
            return "127.0.0.1", 20000 + self.replica

        async def generate(self, request_id: str, prompt_ids: list[int], sampling_params: Any, **_: Any) -> Any:
            await self._decode()
            tokens = random.choices(TOKENS, k=random.randint(4, 12))
            return TokenOutput(
                token_ids=tokens, log_probs=[-1.0] * len(tokens), stop_reason="completed", num_preempted=0, extra_fields={"global_steps": 0}
            )

        async def _decode(self) -> None:
            while self.replica == 0 and is_asked_for("generate"):
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(asyncio.Event().wait(), 1.0)
            await asyncio.sleep(0.05)

        async def nothing(self, *_: Any, **__: Any) -> None:
            return None

        wake_up = sleep = abort_all_requests = resume_generation = clear_kv_cache = nothing
        release_kv_cache = resume_kv_cache = start_profile = stop_profile = nothing

    class MadeUpReplica(RolloutReplica):  # type: ignore[misc]
        async def launch_servers(self) -> None:
            options = {"name": f"vllm_server_{self.replica_rank}_0{self.name_suffix}", "num_cpus": 0, "max_concurrency": self.max_concurrency}
            server = ray.remote(vLLMHttpServer).options(**options).remote(self.replica_rank)
            self.servers.append(server)
            await server.launch_server.remote()
            host, port = await server.get_server_address.remote()
            self._server_handle, self._server_address = server, f"{host}:{port}"

    return MadeUpReplica


class Adapter:
    """The trainer's side of the rollout engine: takes the weights and does nothing with them."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.replica_rank, self.is_leader_rank = int(os.environ.get("RANK", "0")), True

    async def update_weights(self, weights: Any, **_: Any) -> None:
        for _name, _tensor in weights:
            pass

    def get_update_weights_kwargs(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        async def nothing(*_: Any, **__: Any) -> None:
            return None

        return nothing


def flush_state_to_disk() -> None:
    while is_asked_for("step"):
        threading.Event().wait(0.5)


def _with_replica(module: Any) -> None:
    module.RolloutReplicaRegistry.register("vllm", made_up_replica)


def _with_adapter(module: Any) -> None:
    module._ROLLOUT_REGISTRY[("vllm", "async")] = f"{__name__}.Adapter"


def _with_trouble(module: Any) -> None:
    plain = module.FSDPEngine.optimizer_step

    def optimizer_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if os.environ.get("RANK") == os.environ.get("TROUBLE_RANK", "1"):
            flush_state_to_disk()
        return plain(self, *args, **kwargs)

    module.FSDPEngine.optimizer_step = optimizer_step


class AfterImport(importlib.abc.MetaPathFinder):
    """Changes modules of verl as soon as they are there; importing them now would be a circle."""

    CHANGES: ClassVar[dict[str, Callable[[Any], None]]] = {"verl.workers.engine.fsdp.transformer_impl": _with_trouble}
    if os.environ.get("REAL_ENGINE") != "1":
        CHANGES.update({"verl.workers.rollout.replica": _with_replica, "verl.workers.rollout.base": _with_adapter})

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        change = self.CHANGES.get(name)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if change is not None else None
        if spec is None or spec.loader is None or change is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            run(module)
            change(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, AfterImport())

# verl asks for "cpu:gloo,cpu:gloo", which torch refuses.
_plain_init = torch.distributed.init_process_group


def _init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> Any:
    return _plain_init("gloo" if backend and backend.startswith("cpu:gloo,cpu") else backend, *args, **kwargs)


torch.distributed.init_process_group = _init_process_group
