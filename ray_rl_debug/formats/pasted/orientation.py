"""Which way a stack was written, told by its own frames: what only begins a program, and what only ends in a wait."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ray_rl_debug.formats.dump import CodePlace

_OUTER = frozenset(
    "<module> main _bootstrap _bootstrap_inner spawn_main _main run_path _run_module_code _run_code _run_module_as_main main_loop"
    " run_scheduler_process"
    " worker_main run_engine_core launch_server _wrap start_thread clone __clone __clone3 clone3 thread_start _start __libc_start_main main_ppo fit"
    " train"
    " worker_busy_loop run_busy_loop event_loop_normal event_loop_overlap"
    " run_ppo cli run_worker Py_BytesMain Py_RunMain thread_run _wrapped_main run_task_loop".split()
)
_INNER_FILES = (
    "torch/distributed/distributed_c10d.py",
    "threading.py",
    "queue.py",
    "selectors.py",
    "socket.py",
    "ssl.py",
    "multiprocessing/connection.py",
    "multiprocessing/synchronize.py",
    "multiprocessing/popen_fork.py",
    "torch/cuda/streams.py",
    "torch/distributed/rendezvous.py",
    "zmq/sugar/poll.py",
    "zmq/sugar/socket.py",
    "asyncio/base_events.py",
    "subprocess.py",
    "torch/autograd/graph.py",
    "distributed_c10d.py",
    "libc.so.6",
    "concurrent/futures/_base.py",
)
_INNER = frozenset(
    "all_reduce all_gather all_gather_into_tensor reduce_scatter reduce_scatter_tensor broadcast barrier monitored_barrier all_to_all"
    " all_to_all_single all_gather_single reduce_scatter_single"
    " send recv isend irecv wait poll select epoll_wait synchronize acquire join get read _recv recv_multipart accept connect sleep futex_wait"
    " _wait_for_tstate_lock".split()
)

_SYSTEM_CALL = re.compile(r"(?:__(?:x64|ia32|arm64|se)_sys_|SyS_|ksys_|do_syscall_64|entry_SYSCALL_|el0t?_)")
"""The kernel's own side of a call, in which all of its stacks begin."""

KNOWN = _OUTER | _INNER
"""Functions in which programs begin, or wait."""


def is_outermost_first(places: Sequence[CodePlace], least: int = 1) -> bool | None:
    """True or False where one end of the stack tells, None where both or neither do; `least` is how much plainer one end must be."""
    if len(places) < 2:
        return None
    first, last = places[0], places[-1]
    score = _weight(last) - _weight(first)
    if first[0] == "<module>" == places[1][0]:
        score -= 1  # a module that another one imports is at the inner end as well
    if last[0] == "<module>" == places[-2][0]:
        score += 1
    return None if abs(score) < least else score > 0


def _weight(place: CodePlace) -> int:
    """How much this looks like an innermost frame; negative: an outermost one."""
    function, file, _ = place
    short = function.rsplit(".", 1)[-1].rsplit("::", 1)[-1]
    if _SYSTEM_CALL.match(function):
        return -2
    is_leaf_file = file.endswith(_INNER_FILES) and short not in _OUTER and short != "run"
    return 2 * is_leaf_file + (short in _INNER) - 2 * (short in _OUTER)
