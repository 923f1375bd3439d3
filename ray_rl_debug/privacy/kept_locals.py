"""Which local variables of which frames may be kept: numbers and addresses that tell what is waited for, never user data.

py-spy prints the locals of every frame; they are filtered here at once and nothing else of them is stored.
"""

from __future__ import annotations

import re

MAX_VALUE_LENGTH = 200

_PLAIN = re.compile(r"None|True|False|-?\d+(\.\d+)?(e[+-]?\d+)?|<[\w.]+ at 0x[0-9a-f]+>")
_NUMBER = re.compile(r"-?\d+")
_ADDRESS = re.compile(r"""\(["'][\w.:%-]{1,100}["'], \d+\)""")
_PATH = re.compile(r"""(["'])/[^"'\\\n]{1,180}\1""")
_ANY = re.compile(r".*", re.DOTALL)

_TORCH = frozenset(
    "src dst tag group group_name group_desc group_size group_rank group_src group_dst ranks rank backend world_size local_rank local_size "
    "op async_op timeout num_workers device_ids hostname port is_master device_mesh mesh_dim my_group_ranks pg_tag".split()
)
_LOADER = frozenset({"timeout", "idx", "worker_id", "num_workers"})
_STANDARD = frozenset(
    "self timeout block blocking pid waiter lock fut future count maxsize delay wait_flags nbytes job i work_item call_item".split()
)
_NOISE = frozenset({"Thread.run", "Thread._bootstrap_inner"})

_RULES: tuple[tuple[str, frozenset[str], re.Pattern[str]], ...] = (
    ("torch/distributed/", _TORCH, _ANY),
    ("torch/utils/data/dataloader.py", _LOADER, _PLAIN),
    ("torchdata/stateful_dataloader/stateful_dataloader.py", _LOADER, _PLAIN),
    ("torch/utils/cpp_extension.py", frozenset({"build_directory"}), _PATH),
    ("aiter/jit/", frozenset({"build_directory", "lockPath"}), _PATH),
    ("ray/_private/worker.py", frozenset({"timeout", "num_returns", "fetch_local"}), _PLAIN),
    ("ray/dag/", frozenset({"execution_index"}), _NUMBER),
    ("areal/infra/", frozenset({"count", "capacity", "version"}), _NUMBER),
)
_STANDARD_FILES = ("asyncio/", "concurrent/", "multiprocessing/", "queue.py", "selectors.py", "socket.py", "subprocess.py", "threading.py")


def keep_value(file: str, is_standard_library: bool, function: str, name: str, value: str | None) -> str | None:
    """The value to keep, cut to `MAX_VALUE_LENGTH`; None to drop it. ``file`` is below site-packages or the standard library."""
    if value is None:
        return None
    allowed = _allowed(file, is_standard_library, function, name)
    if allowed is None or allowed.fullmatch(value) is None:
        return None
    return value[:MAX_VALUE_LENGTH]


def may_keep(file: str, is_standard_library: bool) -> bool:
    """Could any local of this file be kept?"""
    return file.startswith(_STANDARD_FILES) if is_standard_library else any(file.startswith(prefix) for prefix, _, _ in _RULES)


def _allowed(file: str, is_standard_library: bool, function: str, name: str) -> re.Pattern[str] | None:
    if is_standard_library:
        if not file.startswith(_STANDARD_FILES) or function in _NOISE:
            return None
        if file == "socket.py" and name == "address":
            return _ADDRESS
        return _PLAIN if name in _STANDARD else None
    for prefix, names, pattern in _RULES:
        if file.startswith(prefix):
            return pattern if name in names else None
    return None
