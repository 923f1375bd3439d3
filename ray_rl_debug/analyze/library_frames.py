"""Which frames belong to libraries, and the short names of functions."""

from __future__ import annotations

from functools import lru_cache

from ray_rl_debug.analyze.frameworks import is_transport
from ray_rl_debug.analyze.native_frames import is_native
from ray_rl_debug.model.snapshot import Frame


def short_name(function: str) -> str:
    """``Worker.get_objects`` → ``get_objects``; ``f.<locals>.g`` → ``g``."""
    return function.rsplit(".", 1)[-1]


def is_library(frame: Frame) -> bool:
    """Is this frame of the interpreter, torch, Ray or a client library rather than of the user's or the framework's own code?"""
    return is_library_code(frame.function, frame.file)


@lru_cache(maxsize=1 << 14)
def is_library_code(function: str, f: str) -> bool:
    """The same of a function and its file: nodes of one run have the same few hundred."""
    if is_transport(function, f) or is_native(Frame(function=function, file=f)):
        return True
    if f == "<string>" and not function.startswith(("<", "__")):
        return False  # a function of ``python -c``; <module> starts helper processes too, and generated methods have names of their own kind
    if f.startswith(("<frozen", "<string", "<built")) or function.startswith("<listcomp"):
        return f.startswith("<")
    head, _, rest = f.partition("/")
    if not rest:
        return f in _STDLIB_FILES
    return head in _LIBRARIES


_LIBRARIES = frozenset(
    "torch torchdata cupy torch_npu torch_xla torch_mlu torch_musa aiter"
    " ray re asyncio concurrent multiprocessing http urllib urllib3 requests httpx httpcore anyio aiohttp uvloop email json logging"
    " importlib socketserver werkzeug flask uvicorn fastapi starlette zmq tqdm grpc xmlrpc contextlib collections encodings unittest"
    " opentelemetry msgspec click numpy pandas datasets tensordict codetiming joblib loky multiprocess billiard"
    " jax jaxlib wandb huggingface_hub sqlalchemy psycopg psycopg2"
    " pymysql pymongo amqp redis prometheus_client prometheus_fastapi_instrumentator sse_starlette hypercorn debugpy".split()
)
_STDLIB_FILES = frozenset(
    "threading.py queue.py socket.py ssl.py subprocess.py selectors.py contextlib.py functools.py runpy.py shutil.py tempfile.py pathlib.py"
    " signal.py weakref.py _weakrefset.py re.py copy.py pickle.py pickletools.py os.py gzip.py zipfile.py codecs.py socketserver.py asyncore.py"
    " _zmq.py inspect.py typing.py random.py glob.py sched.py pdb.py bdb.py cmd.py Queue.py SocketServer.py".split()
)
