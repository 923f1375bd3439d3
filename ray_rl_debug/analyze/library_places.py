"""Waits of the standard library and of packages beside it, by file and function: tables, and how a stack is looked up in them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.model.snapshot import Frame, Thread


def stdlib_place(frames: Sequence[Frame], names: Sequence[str], inner: range, thread: Thread | None) -> tuple[Kind | None, str]:
    """Kind and function of the wait that `inner` frames of libraries tell; None where they tell none."""
    if not names:
        return None, ""
    # the package multiprocess is multiprocessing with another pickle
    files = [f"multiprocessing/{f.file[13:]}" if f.file.startswith("multiprocess/") else f.file for f in frames]
    if len(inner) and _is_helper(files[: len(inner)], names[: len(inner)]):
        return Kind.IDLE, names[0]
    found: tuple[Kind | None, str] = (None, "")
    tables = _STDLIB_PLACES + _CLIENT_PLACES if len(inner) < len(frames) else _STDLIB_PLACES
    for i in inner:  # innermost to outermost: the outermost telling frame names the call (Queue.get over Condition.wait)
        n, f = names[i], files[i]
        for file, functions, kind in tables:
            if f.endswith(file) and (functions is None or n in functions):
                found = (kind, n)
                break
    if found[0] is Kind.SOCKET and any(names[i] == "_get_conn" and files[i].endswith("urllib3/connectionpool.py") for i in inner[:6]):
        return Kind.QUEUE, "_get_conn"  # all connections of its pool are in use: a thread of its own program gives one back
    if thread is None and files[0].endswith("logging/__init__.py") and names[0] in ("emit", "flush"):
        return Kind.FILE, names[0]  # the lock of the handler is taken before, so that this is the write
    if thread is None and found == (Kind.MP_QUEUE, "put") and files[0].endswith("multiprocessing/synchronize.py"):
        return Kind.LOCK, "put"  # the writers' lock of a queue: another thread or process has it
    if found[0] is Kind.EVENT and files[0].endswith("threading.py") and names[0] in ("acquire", "__enter__"):
        return Kind.LOCK, names[0]  # one that waits to be woken is in `wait`
    if found[0] is Kind.LOOP_IDLE and not (
        names[0] in ("select", "poll", "run_forever", "_run_once", "run_until_complete", "run") or kernel_call(thread) == "epoll"
    ):
        return None, ""
    return found


BUILD_LOCKS = ("torch/utils/file_baton.py", "aiter/jit/utils/file_baton.py")
"""Where ranks wait until one of them has built an extension: for a file to go away."""

TORCH_RPC = "torch/distributed/rpc/api.py"
"""Who calls another member waits there for its answer; who has nothing more to do serves the calls of others in ``shutdown``."""


def ends_with_others(frames: Sequence[Frame]) -> bool:
    """Does a stack stand in that ``shutdown``, until all members have come there?"""
    return any(f.file.endswith(TORCH_RPC) and f.function.rpartition(".")[2] == "_wait_all_workers" for f in frames)


_STDLIB_PLACES: tuple[tuple[str, frozenset[str] | None, Kind], ...] = (
    ("<built-in>", frozenset({"acquire", "__enter__"}), Kind.LOCK),
    ("<built-in>", frozenset({"flush", "write"}), Kind.FILE),
    ("<built-in>", frozenset({"synchronize"}), Kind.CUDA),
    ("logging/__init__.py", frozenset({"acquire", "_acquireLock"}), Kind.LOCK),
    ("<frozen importlib._bootstrap>", frozenset({"acquire", "__enter__", "has_deadlock", "_lock_unlock_module"}), Kind.LOCK),
    ("threading.py", frozenset({"join", "_wait_for_tstate_lock", "_shutdown"}), Kind.JOIN),
    ("threading.py", frozenset({"wait", "wait_for", "acquire", "__enter__"}), Kind.EVENT),
    ("queue.py", frozenset({"get", "put", "join"}), Kind.QUEUE),
    ("Queue.py", frozenset({"get", "put", "join"}), Kind.QUEUE),
    ("concurrent/futures/_base.py", frozenset({"result", "exception", "result_iterator", "as_completed", "_result_or_cancel"}), Kind.FUTURE),
    ("concurrent/futures/_base.py", frozenset({"wait"}), Kind.FUTURE),
    ("concurrent/futures/thread.py", frozenset({"shutdown"}), Kind.JOIN),
    ("concurrent/futures/process.py", frozenset({"shutdown", "_chain_from_iterable_of_lists"}), Kind.CHILD),
    ("subprocess.py", frozenset({"wait", "_wait", "_try_wait", "communicate", "_communicate", "run", "call", "check_output"}), Kind.CHILD),
    ("multiprocessing/popen_fork.py", frozenset({"wait", "poll"}), Kind.CHILD),
    ("multiprocessing/process.py", frozenset({"join"}), Kind.CHILD),
    ("multiprocessing/util.py", frozenset({"_close_stdin"}), Kind.LOCK),
    ("multiprocessing/pool.py", frozenset({"get", "wait", "next", "join"}), Kind.MP_QUEUE),
    ("datasets/utils/py_utils.py", frozenset({"iflatmap_unordered"}), Kind.MP_QUEUE),
    ("multiprocessing/queues.py", frozenset({"get", "put"}), Kind.MP_QUEUE),
    ("multiprocessing/connection.py", frozenset({"recv", "recv_bytes", "poll", "_recv", "wait", "_poll", "send", "_send"}), Kind.MP_QUEUE),
    ("multiprocessing/managers.py", frozenset({"_callmethod"}), Kind.MP_QUEUE),
    ("zmq/sugar/poll.py", frozenset({"poll"}), Kind.CHANNEL),
    ("zmq/sugar/socket.py", None, Kind.CHANNEL),
    ("socket.py", frozenset({"readinto", "accept", "create_connection", "connect", "sendall", "recv_into"}), Kind.SOCKET),
    ("ssl.py", frozenset({"read", "recv", "recv_into", "do_handshake", "send"}), Kind.SOCKET),
    ("http/client.py", None, Kind.SOCKET),
    ("urllib/request.py", None, Kind.SOCKET),
    ("urllib3/connectionpool.py", None, Kind.SOCKET),
    ("urllib3/connection.py", None, Kind.SOCKET),
    ("requests/api.py", None, Kind.SOCKET),
    ("requests/sessions.py", None, Kind.SOCKET),
    ("httpcore/_backends/sync.py", None, Kind.SOCKET),
    ("grpc/_channel.py", frozenset({"__call__", "_blocking", "result", "_next"}), Kind.SOCKET),
    ("grpc/_server.py", frozenset({"wait_for_termination"}), Kind.IDLE),
    ("grpc/_server.py", frozenset({"_next", "__next__"}), Kind.CHANNEL),
    *((file, frozenset({"wait"}), Kind.FLOCK) for file in BUILD_LOCKS),
    (TORCH_RPC, frozenset({"rpc_sync", "rpc_async", "remote", "_invoke_rpc"}), Kind.CHANNEL),
    (TORCH_RPC, frozenset({"shutdown"}), Kind.IDLE),
    ("selectors.py", frozenset({"select"}), Kind.LOOP_IDLE),
    ("asyncio/base_events.py", frozenset({"run_forever", "_run_once", "run_until_complete"}), Kind.LOOP_IDLE),
    ("asyncio/runners.py", frozenset({"run"}), Kind.LOOP_IDLE),
    ("huggingface_hub/file_download.py", frozenset({"xet_get", "http_get"}), Kind.SOCKET),
    ("socketserver.py", frozenset({"serve_forever"}), Kind.LOOP_IDLE),
    ("SocketServer.py", frozenset({"serve_forever"}), Kind.LOOP_IDLE),
)  # fmt: skip

_CLIENT_PLACES: tuple[tuple[str, frozenset[str] | None, Kind], ...] = (
    ("redis/connection.py", frozenset({"_read_from_socket", "_connect", "connect", "send_packed_command"}), Kind.SOCKET),
    ("redis/_parsers/socket.py", frozenset({"_read_from_socket"}), Kind.SOCKET),
    ("amqp/transport.py", frozenset({"_read", "read_frame", "_connect", "write"}), Kind.SOCKET),
    ("pymysql/connections.py", frozenset({"_read_bytes", "_write_bytes", "connect"}), Kind.SOCKET),
    ("sqlalchemy/engine/default.py", frozenset({"do_execute", "do_executemany", "do_commit", "do_rollback", "do_ping", "connect"}), Kind.SOCKET),
    ("psycopg/waiting.py", None, Kind.SOCKET),
    *((f"wandb/sdk/{file}.py", None, Kind.SOCKET) for file in ("lib/mailbox", "mailbox/mailbox_handle", "mailbox/wait_with_progress")),
    ("pymongo/network_layer.py", None, Kind.SOCKET),
    ("pymongo/network.py", None, Kind.SOCKET),
)
"""Clients of services. Their own threads rest in the same functions, so that they count below somebody's own code alone."""

_PAUSES: tuple[tuple[str, frozenset[str]], ...] = (
    ("wandb/sdk/lib/retry.py", frozenset({"_sleep_check_cancelled", "__call__"})),
    ("huggingface_hub/utils/_http.py", frozenset({"http_backoff", "_http_backoff_base"})),
    ("urllib3/util/retry.py", frozenset({"sleep", "_sleep_backoff", "sleep_for_retry"})),
    ("google/api_core/retry/retry_unary.py", frozenset({"retry_target"})),
    ("google/api_core/retry.py", frozenset({"retry_target"})),
    ("backoff/_sync.py", frozenset({"retry"})),
    ("mlflow/utils/request_utils.py", frozenset({"_get_http_response_with_retries"})),
)
"""Where clients of services pause after a request that failed, before they try it again."""


def pauses_before_retry(frames: Sequence[Frame]) -> bool:
    """Does a stack stand in such a pause?"""
    return any(f.file.endswith(file) and f.function.rpartition(".")[2] in names for f in frames[:4] for file, names in _PAUSES)


_DATA_FILES = re.compile(r"(?:^|/)(?:data|datasets?|dataloaders?|data_loaders?|datapipes?|data_utils)/|data_?loader|datasets?\w{0,20}\.py$")
_ITERATES = frozenset("__next__ next __iter__ _chunk_iterator get_batch next_batch _next_data fetch_next prefetch _prefetch".split())


def iterates_over_data(frame: Frame) -> bool:
    """Is it where an iterator over a data set takes its next item? By file and function, whatever the package."""
    return frame.function.rpartition(".")[2] in _ITERATES and _DATA_FILES.search(frame.file) is not None


_REQUEST_HANDLERS: tuple[tuple[str, frozenset[str]], ...] = (
    ("socketserver.py", frozenset({"process_request_thread", "finish_request"})),
    ("http/server.py", frozenset({"handle_one_request"})),
    ("wsgiref/handlers.py", frozenset({"run"})),
    ("werkzeug/serving.py", frozenset({"run_wsgi"})),
    ("waitress/task.py", frozenset({"service"})),
    ("gunicorn/workers/sync.py", frozenset({"handle_request"})),
    ("gunicorn/workers/gthread.py", frozenset({"handle_request"})),
    ("anyio/_backends/_asyncio.py", frozenset({"run"})),  # FastAPI and Starlette: what is no coroutine
    ("grpc/_server.py", frozenset({"_unary_response_in_pool", "_stream_response_in_pool"})),
)
"""Where servers run what answers a request."""


def answers_request(frames: Sequence[Frame]) -> bool:
    """Does a stack stand below a server's handler? Then whoever asked waits for this very thread."""
    return any(f.file.endswith(file) and f.function.rpartition(".")[2] in names for f in frames for file, names in _REQUEST_HANDLERS)


def awaits_result(frames: Sequence[Frame]) -> bool:
    """Does it wait for the result of what it gave a pool of multiprocessing? Nobody rests there between two requests."""
    return any(f.file.endswith("multiprocessing/pool.py") and f.function.rpartition(".")[2] in ("get", "wait", "next") for f in frames)


_STREAMS = "grpc/_channel.py"


def awaits_end_of_stream(frames: Sequence[Frame]) -> bool:
    """Has a client of gRPC sent a stream of requests, which has one answer once it ends?"""
    return any(f.file.endswith(_STREAMS) and f.function.startswith("_StreamUnaryMultiCallable.") for f in frames)


def makes_requests(frames: Sequence[Frame]) -> bool:
    """Does a thread take the next request of such a stream from the program, as it does until the stream ends, and not wait for room to send it?"""
    at = next((i for i, f in enumerate(frames) if f.file.endswith(_STREAMS) and f.function.endswith(".consume_request_iterator")), None)
    return bool(at) and not frames[(at or 0) - 1].file.endswith(("threading.py", "grpc/_common.py", _STREAMS))


def reads_requests(frames: Sequence[Frame]) -> bool:
    """Does a server's handler of gRPC wait for the next request of a stream?"""
    return any(f.file.endswith("grpc/_server.py") and f.function.startswith("_RequestIterator.") for f in frames)


_HELPERS: tuple[tuple[str, str], ...] = (
    ("ray/_private/gc_collect_manager.py", "run"),
    ("ray/_private/", "_run_loop"),
    ("tqdm/_monitor.py", "run"),
    ("concurrent/futures/thread.py", "_worker"),
    ("torch/_inductor/", "_read_thread"),
    ("torch/_inductor/compile_worker/subproc_pool.py", "_recv_msg"),
    ("ray/_private/import_thread.py", "_run"),
    ("ray/_private/gcs_pubsub.py", "_poll_locked"),
    ("multiprocessing/managers.py", "serve_forever"),
    ("multiprocessing/managers.py", "serve_client"),
    ("multiprocessing/managers.py", "accepter"),
    ("multiprocessing/resource_sharer.py", "_serve"),
    ("ray/_private/log_monitor.py", "run"),
    ("logging/handlers.py", "_monitor"),
    ("opentelemetry/sdk", "worker"),
    ("opentelemetry/sdk", "_worker"),
)


def _is_helper(files: Sequence[str], names: Sequence[str]) -> bool:
    """A thread that waits for work by design: pool threads, Ray's collector thread, progress bars. Asked of what lies inside of own code."""
    for i, (f, n) in enumerate(zip(files, names, strict=True)):
        if i > 4:
            return False
        if any(part in f and n == fn for part, fn in _HELPERS):
            # a pool thread is idle only when nothing runs above _worker but the queue
            return not (n == "_worker" and any(x == "run" and files[j].endswith("thread.py") for j, x in enumerate(names[:i])))
    return False
