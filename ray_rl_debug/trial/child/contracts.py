"""The ways in which frameworks call an agent, recognised by what the class offers.

Read in AReaL 1.0.4 (``api/workflow_api.py``, ``experimental/openai/proxy/workflow.py``), verl 0.9.1 (``experimental/agent_loop/agent_loop.py``) and
Agent-Lightning 0.3.0 (``litagent/litagent.py``, ``types/core.py``).
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ray_rl_debug.trial.child.returns import Answer, check_loop_output, check_raw_result, check_reward, check_trajectory
from ray_rl_debug.trial.child.stand_ins import ByteTokenizer, Engine, ServerManager, in_thread, namespace

Episode = Callable[[dict[str, Any]], Awaitable[Any]]


class ContractError(Exception):
    """The class cannot be loaded, or no framework would call it."""

    def __init__(self, reason: str, cure: str) -> None:
        super().__init__(reason)
        self.cure = cure


SHAPE = "give the class a method `async def run(self, data, **extra_kwargs)` that returns the reward, or name another class"
ADDRESS = "write it as my_agent:MyAgent or path/my_agent.py:MyAgent"
MOST_NAMES = 8


def load(target: str) -> Any:
    """What ``MODULE:NAME`` or ``FILE.py:NAME`` names."""
    where, _, name = target.rpartition(":")
    if not where or not name:
        raise ContractError(f"{target!r} is not MODULE:CLASS", ADDRESS)
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = _file(where) if where.endswith(".py") else importlib.import_module(where)
    except ContractError:
        raise
    except BaseException as e:  # whatever the user's module raises while it is imported
        raise ContractError(f"importing {where} failed: {type(e).__name__}: {e}", _cure_of_import(where, e)) from e
    for part in name.split("."):
        if not hasattr(found, part):
            raise ContractError(f"{where} has no {name}", f"name what it has: {', '.join(_callables(found)) or 'no class, and no function'}")
        found = getattr(found, part)
    return found


def _cure_of_import(where: str, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name in (where, where.partition(".")[0]):
        return f"run it in the folder that holds {where.partition('.')[0]}, or name the file: path/{where.rpartition('.')[2]}.py:CLASS"
    if isinstance(error, ImportError):
        return "give --python PATH of the interpreter that has its packages"
    return "mend the module: nothing else could be tried"


def _callables(module: Any) -> list[str]:
    """Classes and functions of its own that may be the agent, classes first."""
    own = [(n, o) for n, o in vars(module).items() if not n.startswith("_") and callable(o) and getattr(o, "__module__", None) == module.__name__]
    return [n for n, _ in sorted(own, key=lambda one: not inspect.isclass(one[1]))][:MOST_NAMES] if inspect.ismodule(module) else []


def _file(path: str) -> Any:
    if not os.path.exists(path):
        raise ContractError(f"there is no {path}", ADDRESS)
    name = os.path.splitext(os.path.basename(path))[0]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ContractError(f"{path} is no Python file", ADDRESS)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Contract:
    """One way to be called."""

    def __init__(self, name: str, make: Callable[[], Episode], check: Callable[[Any], Answer], note: str = "") -> None:
        self.name, self.make, self.check, self.note = name, make, check, note


def detect(thing: Any, given: Mapping[str, Any]) -> Contract:
    """Which framework would call this, and how. `given` are the options of the trial."""
    if inspect.isfunction(thing) and not inspect.iscoroutinefunction(thing):
        thing = _instance(thing, given)  # it makes the agent
    kind = thing if inspect.isclass(thing) else type(thing)
    bases = {b.__name__ for b in kind.__mro__}
    if hasattr(thing, "arun_episode"):
        return _areal_workflow(thing, given)
    if "AgentLoopBase" in bases:
        return _verl(thing, given)
    if "LitAgent" in bases or ((hasattr(thing, "rollout_async") or hasattr(thing, "rollout")) and not hasattr(thing, "run")):
        return _agent_lightning(thing, given)
    if inspect.isfunction(thing) and inspect.iscoroutinefunction(thing):
        return Contract("areal-agent", lambda: _areal_call(thing, given), check_reward, "a function")
    run = getattr(thing, "run", None)
    if run is None:
        raise ContractError(
            "it has neither run(self, data, **extra_kwargs) nor arun_episode(self, engine, data) (AReaL), nor is it an AgentLoopBase (verl) or "
            "a LitAgent (Agent-Lightning)",
            SHAPE,
        )
    if not inspect.iscoroutinefunction(run):
        raise ContractError("run is no `async def`: AReaL awaits it in its event loop, beside all other episodes", "write it as async def run")
    return Contract("areal-agent", lambda: _areal_call(_instance(thing, given).run, given), check_reward, _takes(run))


def _takes(run: Any) -> str:
    parameters = inspect.signature(run).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return ""
    return "run does not take **extra_kwargs: AReaL passes base_url, api_key and http_client"


def _instance(thing: Any, given: Mapping[str, Any], **more: Any) -> Any:
    if not inspect.isclass(thing) and not inspect.isfunction(thing):
        return thing
    try:
        return thing(**{**more, **given["init"]})
    except Exception as e:
        raise ContractError(f"{thing.__name__}(...) failed: {type(e).__name__}: {e}", "give its arguments: --init '{\"name\": value}'") from e


def _areal_call(run: Any, given: Mapping[str, Any]) -> Episode:
    shared: dict[str, Any] = {}
    try:
        httpx = importlib.import_module("httpx")
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        shared["http_client"] = httpx.AsyncClient(timeout=None, limits=limits)
    except ImportError:
        pass
    names = inspect.signature(run).parameters
    takes_all = any(p.kind is p.VAR_KEYWORD for p in names.values())
    count = 0

    async def call(row: dict[str, Any]) -> Any:
        nonlocal count
        count += 1
        urls = given["base_urls"]
        extra = {"base_url": urls[count % len(urls)], "api_key": given["api_key"], **shared, **given["extra"]}
        return await run(dict(row), **{k: v for k, v in extra.items() if takes_all or k in names})

    return call


def _areal_workflow(thing: Any, given: Mapping[str, Any]) -> Contract:
    if not inspect.iscoroutinefunction(thing.arun_episode):
        raise ContractError("arun_episode is no `async def`: AReaL awaits it in its event loop", "write it as async def arun_episode")
    engine = Engine(given["base_urls"], given["max_tokens"])

    def make() -> Episode:
        workflow = _instance(thing, given)
        return lambda row: workflow.arun_episode(engine, dict(row))

    return Contract("areal-workflow", make, check_trajectory)


def _verl(thing: Any, given: Mapping[str, Any]) -> Contract:
    if not inspect.iscoroutinefunction(thing.run):
        raise ContractError("run is no `async def`: verl awaits it in the agent loop's event loop", "write it as async def run")

    def make() -> Episode:
        loop = _instance(thing, given, **_verl_arguments(given))
        sampling = {"temperature": 1.0, "top_p": 1.0, "logprobs": True, "max_tokens": given["max_tokens"]}

        def call(row: dict[str, Any]) -> Any:
            more = {"raw_prompt": row.get("messages") or [{"role": "user", "content": str(row)}], **row, **given["extra"]}
            return loop.run(dict(sampling), **more)

        return call

    return Contract("verl-agent-loop", make, check_loop_output)


def _verl_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """As ``AgentLoopWorker`` makes an agent loop."""
    omegaconf = importlib.import_module("omegaconf")
    loops = importlib.import_module("verl.experimental.agent_loop.agent_loop")
    long = {"prompt_length": 1 << 14, "response_length": given["max_tokens"], "max_model_len": None}
    rollout = {**long, "full_determinism": False, "multi_turn": {"max_user_turns": None, "max_assistant_turns": 4, "max_parallel_calls": 1}}
    config = omegaconf.OmegaConf.create({"actor_rollout_ref": {"rollout": rollout, "model": {}}, "data": {}})
    engine = Engine(given["base_urls"], given["max_tokens"])
    return {
        "trainer_config": namespace(config=config),
        "server_manager": ServerManager(engine, given["max_tokens"]),
        "tokenizer": _tokenizer(given["tokenizer"]),
        "processor": None,
        "dataset_cls": getattr(loops, "RLHFDataset", None),
        "data_config": namespace(config=config.data),
    }


def _tokenizer(path: str | None) -> Any:
    if path is None:
        return ByteTokenizer()
    return importlib.import_module("transformers").AutoTokenizer.from_pretrained(path)


def _agent_lightning(thing: Any, given: Mapping[str, Any]) -> Contract:
    is_async = _is_async(thing)
    note = "" if is_async else "rollout is no coroutine: a runner does one at a time, so here each one gets a thread of its own"

    def make() -> Episode:
        agent = _instance(thing, given)
        types_ = importlib.import_module("agentlightning.types") if importlib.util.find_spec("agentlightning") else None

        async def call(row: dict[str, Any]) -> Any:
            resources, rollout = _agl_resources(types_, given), _agl_rollout(types_, row)
            if is_async:
                method = getattr(agent, "training_rollout_async", None) or agent.rollout_async
                return await method(dict(row), resources, rollout)
            return await in_thread(getattr(agent, "training_rollout", None) or agent.rollout, dict(row), resources, rollout)

        return call

    return Contract("agent-lightning", make, check_raw_result, note)


def _is_async(thing: Any) -> bool:
    own = [n for k in (thing if inspect.isclass(thing) else type(thing)).__mro__ if k.__name__ not in ("LitAgent", "object") for n in vars(k)]
    return any(n.endswith("rollout_async") for n in own)


def _agl_resources(types_: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"endpoint": given["base_urls"][0], "model": given["model"], "api_key": given["api_key"]}
    llm = types_.LLM(**fields) if types_ is not None else namespace(**fields)
    return {"main_llm": llm}


def _agl_rollout(types_: Any, row: dict[str, Any]) -> Any:
    fields = {"rollout_id": f"ro-{uuid.uuid4().hex[:12]}", "input": dict(row), "start_time": time.time(), "mode": "train"}
    return types_.Rollout(**fields) if types_ is not None else namespace(**fields)
