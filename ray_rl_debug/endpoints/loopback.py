"""Small servers on the loopback interface: one that passes requests on and records them, one that answers from a recording."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ray_rl_debug.endpoints.exchanges import Exchange, Shelf, Writer
from ray_rl_debug.endpoints.extras import need
from ray_rl_debug.model.errors import UsageError

HOST = "127.0.0.1"
MAX_REQUEST = 256 << 20
MAX_ANSWER = 256 << 20
"""Bytes of a stream that are kept; what is longer is passed on and not recorded."""
_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HOP = frozenset("host content-length transfer-encoding connection keep-alive te trailer upgrade accept-encoding".split())
"""Headers that belong to one connection."""
Say = Callable[..., None]
Handler = Callable[[Any], Awaitable[Any]]


def why_silent(engine: str, wait_s: float = 2.0) -> str | None:
    """Why nobody takes a connection at this address; None when somebody does.

    Raises:
        UsageError: it is no address.
    """
    try:
        parts = urlsplit(engine)
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        parts, host, port = urlsplit(""), None, 0
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(f"{engine!r} is no address", hint="give it as http://127.0.0.1:8000/v1")
    try:
        socket.create_connection((host, port), wait_s).close()
    except OSError as e:
        return (e.strerror or type(e).__name__).lower()
    return None


def record(engine: str, writer: Writer, port: int, ready: Say, say: Say, *, timeout_s: float = 600.0) -> None:
    """Pass every request on to `engine` and keep it with its answer, until Ctrl-C.

    Args:
        ready: Is told the address once it can be asked.
        say: Is told what happens.

    Raises:
        UsageError: the port is taken.
    """
    _run(lambda web: _recording(web, engine.rstrip("/").removesuffix("/v1"), writer, timeout_s, say), port, ready)


def serve(shelf: Shelf, port: int, ready: Say, say: Say, *, latency_s: float = 0.0) -> None:
    """Answer from a recording until Ctrl-C; as `record`.

    Raises:
        UsageError: the port is taken.
    """
    _run(lambda web: _replaying(web, shelf, latency_s, say), port, ready)


def _run(handler: Callable[[Any], Handler], port: int, ready: Say) -> None:
    web = need("aiohttp.web", "a server on this machine")
    asyncio.run(_listen(web, handler(web), port, ready))


async def _listen(web: Any, handler: Handler, port: int, ready: Say) -> None:
    app = web.Application(client_max_size=MAX_REQUEST, middlewares=[_only_local(web)])
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, port)
        try:
            await site.start()
        except OSError as e:
            raise UsageError(f"port {port} cannot be used: {e.strerror}", hint="choose another with --port, or 0 for any free one") from e
        ready(f"http://{HOST}:{runner.addresses[0][1]}/v1")
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        await ended.wait()
    finally:
        await runner.cleanup()


def _only_local(web: Any) -> Any:
    """A page in a browser must not reach us by a name that it points to this machine (DNS rebinding)."""

    @web.middleware  # type: ignore[untyped-decorator]
    async def check(request: Any, handler: Handler) -> Any:
        if request.headers.get("Host", "").rsplit(":", 1)[0] not in _NAMES:
            return web.json_response({"error": {"message": "only for programs of this machine"}}, status=403)
        return await handler(request)

    return check


def _recording(web: Any, engine: str, writer: Writer, timeout_s: float, say: Say) -> Handler:
    aiohttp = need("aiohttp", "recording")

    async def handle(request: Any) -> Any:
        body, began = await request.read(), time.monotonic()
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP}
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.request(request.method, engine + request.path_qs, data=body, headers=headers, allow_redirects=False) as answer,
            ):
                kind = answer.headers.get("Content-Type", "application/json")
                passed = web.StreamResponse(status=answer.status, headers={"Content-Type": kind})
                await passed.prepare(request)
                kept = bytearray()
                async for block in answer.content.iter_any():
                    kept += block[: max(0, MAX_ANSWER + 1 - len(kept))]
                    await passed.write(block)
                await passed.write_eof()
        except (aiohttp.ClientError, asyncio.TimeoutError) as e:
            say(f"{request.method} {request.path}: {engine} does not answer: {type(e).__name__}")
            return web.json_response({"error": {"message": f"the engine does not answer: {type(e).__name__}"}}, status=502)
        if len(kept) > MAX_ANSWER:
            say(f"{request.method} {request.path}: an answer of more than {MAX_ANSWER >> 20} MiB is not kept")
            return passed
        writer.add(
            Exchange(
                method=request.method,
                path=request.path,
                request=_json(body),
                status=answer.status,
                content_type=kind,
                answer=kept.decode("utf-8", "replace"),
                seconds=time.monotonic() - began,
            )
        )
        say(f"{writer.count} recorded: {request.method} {request.path} {answer.status}")
        return passed

    return handle


def _replaying(web: Any, shelf: Shelf, latency_s: float, say: Say) -> Handler:
    async def handle(request: Any) -> Any:
        found = shelf.find(request.method, request.path, _json(await request.read()))
        await asyncio.sleep(latency_s)
        if found is None and request.method == "GET" and request.path in ("/health", "/v1/models"):
            return web.json_response({"object": "list", "data": [{"id": m, "object": "model"} for m in shelf.models]})
        if found is None:
            say(f"no answer: {request.method} {request.path} asks what was not recorded")
            said = "this question is not in the recording; rollout serve --any gives another answer"
            return web.json_response({"error": {"message": said, "type": "not_recorded", "code": 404}}, status=404)
        if not found.is_stream:
            return web.Response(status=found.status, text=found.answer, headers={"Content-Type": found.content_type})
        answer = web.StreamResponse(status=found.status, headers={"Content-Type": found.content_type})
        await answer.prepare(request)
        for event in found.answer.split("\n\n"):
            if event.strip():
                await answer.write(event.encode() + b"\n\n")
        await answer.write_eof()
        return answer

    return handle


def _json(body: bytes) -> Any:
    """The decoded body; bytes that are no JSON as text."""
    if not body:
        return None
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return body.decode("utf-8", "replace")
