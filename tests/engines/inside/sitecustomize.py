"""What a real engine needs on a machine without GPUs, and where troubles come in. Python loads it because this folder is on PYTHONPATH.

``NO_YIELD=1``: vLLM's readers spin with ``sched_yield``; on few cores every other process is then woken half a second late. They sleep for no time.
``KEEP_WEIGHTS=1``: vLLM's CPU backend repacks linear weights and empties the parameters; a weight update of a running model then fails.
``SGLANG_USE_CPU_ENGINE=1``: the published torchvision is a CUDA build whose C part does not load; the operators it wants are declared.
``TROUBLE_DIR``: see ``troubles.py``.
"""

import functools
import importlib.abc
import importlib.machinery
import os
import sys
import time

if os.environ.get("NO_YIELD") == "1":
    os.sched_yield = functools.partial(time.sleep, 0.0)


def keep_weights(module):
    from torch.nn.functional import linear

    def keep(layer, remove_weight=False):
        layer.cpu_linear = linear

    module.dispatch_cpu_unquantized_gemm = keep


def stall_vllm_forward(module):
    import troubles

    plain = module.GPUModelRunner._model_forward

    @functools.wraps(plain)
    def _model_forward(self, *args, **kwargs):
        troubles.hold("forward", troubles.tp_rank())
        return plain(self, *args, **kwargs)

    module.GPUModelRunner._model_forward = _model_forward


def stall_sglang_forward(module):
    import troubles

    plain = module.ModelRunner.forward

    @functools.wraps(plain)
    def forward(self, *args, **kwargs):
        troubles.hold("forward", module.get_parallel().tp_rank)
        return plain(self, *args, **kwargs)

    module.ModelRunner.forward = forward


def stall_weight_update(module):
    import troubles

    plain = module.ServerAdapter.update_weights

    @functools.wraps(plain)
    async def update_weights(self, *args, **kwargs):
        troubles.hold("weights")
        return await plain(self, *args, **kwargs)

    module.ServerAdapter.update_weights = update_weights


def fail_weight_receiver(module):
    import troubles

    plain = module.vLLMColocateWorkerExtension.update_weights_from_ipc

    @functools.wraps(plain)
    def update_weights_from_ipc(self, *args, **kwargs):
        troubles.fail("receiver")
        return plain(self, *args, **kwargs)

    module.vLLMColocateWorkerExtension.update_weights_from_ipc = update_weights_from_ipc


def declare_vision_operators():
    from torch.library import Library

    library = Library("torchvision", "DEF")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    KEPT.append(library)


KEPT = []
"""What must live as long as the process."""
CHANGES = {}
if os.environ.get("KEEP_WEIGHTS") == "1":
    CHANGES["vllm.model_executor.layers.utils"] = keep_weights
if "TROUBLE_DIR" in os.environ:
    CHANGES["vllm.v1.worker.gpu_model_runner"] = stall_vllm_forward
    CHANGES["verl.workers.rollout.vllm_rollout.vllm_rollout"] = stall_weight_update
    CHANGES["verl.workers.rollout.vllm_rollout.utils"] = fail_weight_receiver
    CHANGES["sglang.srt.model_executor.model_runner"] = stall_sglang_forward


class AfterImport(importlib.abc.MetaPathFinder):
    """Changes a module as soon as it is there."""

    def find_spec(self, name, path=None, target=None):
        if name == "torchvision" and not KEPT and "torch" in sys.modules and os.environ.get("SGLANG_USE_CPU_ENGINE") == "1":
            declare_vision_operators()
        change = CHANGES.pop(name, None)
        if change is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            change(module)

        spec.loader.exec_module = exec_module
        return spec


if CHANGES or os.environ.get("SGLANG_USE_CPU_ENGINE") == "1":
    sys.meta_path.insert(0, AfterImport())
