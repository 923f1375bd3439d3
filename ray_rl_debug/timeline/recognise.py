"""Which kind of trace or log a file is, by its first lines."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from pathlib import Path

from ray_rl_debug.collect.flight_recorder import read_flight_files
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.timeline.layout import Layout
from ray_rl_debug.timeline.model import Source
from ray_rl_debug.timeline.sources.areal_perf import ArealPerfSource
from ray_rl_debug.timeline.sources.areal_sessions import ArealSessionSource
from ray_rl_debug.timeline.sources.engine_numbers import EngineNumbersSource, is_engine_numbers
from ray_rl_debug.timeline.sources.flight import flight_source
from ray_rl_debug.timeline.sources.json_stream import open_text
from ray_rl_debug.timeline.sources.kineto import KinetoSource
from ray_rl_debug.timeline.sources.ray_timeline import RayTimelineSource
from ray_rl_debug.timeline.sources.verl_log import CONSOLE, VerlLogSource
from ray_rl_debug.timeline.sources.watch_history import WatchHistorySource

MAX_LOG_CHARS = 64 << 20
MAX_LINE_CHARS = 1 << 20

_HEAD_LINE = 1 << 14
_RAY = re.compile(r'"tid"\s*:\s*"(worker|driver):[0-9a-f]')


def recognise(path: Path, head: str) -> Callable[[Layout], Source] | None:
    """What makes the file's source, once it is known where processes stand; None for a file we do not know."""
    start = head.lstrip("\ufeff \t\r\n")
    if start.startswith("[") and _RAY.search(head):
        return lambda layout: RayTimelineSource(path.name, None, layout, path)
    if start.startswith(("{", "[")):
        return _json(path, head, start)
    if start[:1] == "\x80" or head.startswith("\ufffd"):
        return _flight(path)
    return (lambda layout: VerlLogSource(path, layout)) if _has_steps(path) else None


def _json(path: Path, head: str, start: str) -> Callable[[Layout], Source] | None:
    line = start[:_HEAD_LINE].split("\n", 1)[0]
    if any(word in head for word in ('"traceEvents"', '"baseTimeNanoseconds"', '"deviceProperties"')):
        return lambda layout: KinetoSource(path, layout)
    if ('"entries"' in head and ('"pg_config"' in head or '"pg_status"' in head)) or '"comm_lib_version"' in head or '"nccl_version"' in head:
        return _flight(path)
    if '"time_s"' in line and '"kind"' in line and start.startswith("{"):
        return lambda layout: WatchHistorySource(path)
    if start.startswith("{") and is_engine_numbers(line):
        return lambda layout: EngineNumbersSource(path)
    if '"submit_ts"' in line and '"session_id"' in line:
        return lambda layout: ArealSessionSource(path, layout)
    if '"ph"' in line and start.startswith("{"):
        return lambda layout: ArealPerfSource(path, layout)
    if '"step"' in line and '"timing_s/' in start:
        return lambda layout: VerlLogSource(path, layout)
    return None


def _flight(path: Path) -> Callable[[Layout], Source] | None:
    """A dump is read at once: whether it is one shows only when it is read whole."""
    records, gaps = read_flight_files([path])
    if not records:
        raise UnreadableFileError(gaps[0].reason.partition(": ")[2] if gaps else "no Flight Recorder dump")
    return lambda layout: flight_source(path.name, records, layout)


def _has_steps(path: Path) -> bool:
    """Is there a step of verl's console logger in the log's first part?"""
    left = MAX_LOG_CHARS
    try:
        with open_text(path) as f:
            while left > 0 and (line := f.readline(MAX_LINE_CHARS)):
                if CONSOLE.search(line):
                    return True
                left -= len(line)
    except (OSError, EOFError, zlib.error):
        return False
    return False
