"""Asks Agent-Lightning's store over HTTP: health, numbers, runners, rollouts and their spans; only GET requests, all before a deadline."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from ray_rl_debug.collect.plain_http import Answer, Get, get_all
from ray_rl_debug.model import gaps
from ray_rl_debug.model.errors import UsageError
from ray_rl_debug.model.lightning import Proxy, Rollout, Store
from ray_rl_debug.model.snapshot import Gap, Runner

PREFIX = "/v1/agl"
BETWEEN_S = 2.0
MAX_ROLLOUTS = 400
MAX_SPANS_OF = 48
"""Rollouts whose spans are asked for: all that are open, then the newest."""
MAX_SPANS = 200
OPEN = ("queuing", "preparing", "running", "requeuing")
_OURS = ("agentlightning.reward", "agentlightning.annotation", "agentlightning.message", "agentlightning.object", "agentlightning.exception")
"""Names of spans that are not calls of a model or a tool."""
NO_JSON = "the answer is no JSON"
_WORKER = ("worker_id", "status")


def address_of(url: str) -> tuple[str, int]:
    """Host and port of ``http://HOST:PORT``. Raises `UsageError`."""
    given = url if "//" in url else f"http://{url}"
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError as e:
        raise UsageError(f"{url!r} is no URL: {e}", hint="write it as http://HOST:4747, Agent-Lightning's own default") from e
    if parts.scheme != "http" or not parts.hostname:
        raise UsageError(f"{url!r} is not the URL of a store", hint="write it as http://HOST:4747, Agent-Lightning's own default")
    return parts.hostname, port or 4747


def ask_store(url: str, *, deadline_s: float = 20.0, between_s: float = BETWEEN_S) -> Store:
    """Two looks at the store; what it does not answer in time is a gap."""
    where = address_of(url)
    until = time.monotonic() + deadline_s
    asked = (
        "/health",
        "/statistics",
        "/workers?limit=1000",
        f"/rollouts?limit={MAX_ROLLOUTS}&sort_by=start_time&sort_order=desc",
        "/resources?limit=20",
    )
    paths = [*asked, "/rollouts?limit=1000&" + "&".join(f"status_in={s}" for s in OPEN)]
    began = time.monotonic()
    answers = _ask(where, paths, min(until, began + deadline_s / 2))
    health, numbers, workers, newest, resources, open_ = answers
    if all(isinstance(a, str) for a in answers):
        return Store(url=url, reason=str(health), is_other=health in (NO_JSON, "status 404"))
    if not isinstance(numbers, Mapping) or not isinstance(workers, Mapping) or not isinstance(workers.get("items"), list):
        said = next((a for a in (numbers, workers, health) if isinstance(a, str)), "its answers have another form")
        return Store(url=url, reason=f"{said}; it may be no store of Agent-Lightning", is_other=True)
    runners = tuple(r for r in map(_runner, _items(workers)) if r is not None)
    rollouts = _rollouts([*_items(open_), *_items(newest)])
    missing = [_gap(url, p, a) for p, a in zip(paths, answers, strict=True) if isinstance(a, str)]
    rollouts, more = _with_spans(where, url, rollouts, until)
    proxies = _proxies(_items(resources), until)
    time.sleep(max(0.0, min(began + between_s, until - 2.0) - time.monotonic()))
    again = _ask(where, ["/statistics"], until)[0]
    spans, later = _whole(numbers.get("total_spans")), _whole(again.get("total_spans")) if isinstance(again, Mapping) else None
    times = [t for r in runners for t in r.times]
    times += [t for r in rollouts for t in (r.start_time_s, r.end_time_s, r.attempt_start_s, r.span_time_s) if t is not None]
    return Store(
        url=url,
        is_healthy=health.get("status") == "ok" if isinstance(health, Mapping) else None,
        now_s=max(times, default=None),
        between_s=round(time.monotonic() - began, 3),
        total_rollouts=_whole(numbers.get("total_rollouts")),
        total_spans=spans,
        new_spans=later - spans if later is not None and spans is not None else None,
        counts=dict(Counter(r.status for r in rollouts)),
        rollouts=rollouts,
        runners=runners,
        proxies=proxies,
        gaps=(*missing, *more),
    )


def ask_runners(addresses: Sequence[tuple[str, int]], until: float) -> tuple[Runner, ...]:
    """The runners of all stores among these listeners, which are asked at the same time; others answer something else, or nothing."""
    found: dict[str, Runner] = {}
    for raw in get_all([Get(*a, f"{PREFIX}/workers") for a in addresses], until):
        answer = _decoded(raw)
        items = _items(answer)
        if all(isinstance(i, Mapping) and all(k in i for k in _WORKER) for i in items):
            found |= {r.worker_id: r for r in map(_runner, items) if r is not None}
    return tuple(found.values())


def _ask(where: tuple[str, int], paths: Sequence[str], until: float) -> list[Any]:
    """Decoded answers, or why there is none."""
    return [_decoded(a) for a in get_all([Get(*where, PREFIX + p) for p in paths], until, max_request=None)]


def _decoded(answer: Answer | str) -> Any:
    if isinstance(answer, str):
        return answer
    if answer.status != 200:
        return f"status {answer.status}"
    try:
        return msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        return NO_JSON


def _items(answer: Any) -> list[Any]:
    items = answer.get("items") if isinstance(answer, Mapping) else None
    return items if isinstance(items, list) else []


def _runner(item: Any) -> Runner | None:
    if not isinstance(item, Mapping) or not isinstance(item.get("worker_id"), str):
        return None
    stats = item.get("heartbeat_stats")
    return Runner(
        worker_id=item["worker_id"],
        status=_text(item.get("status")),
        host=_text(stats.get("host")) if isinstance(stats, Mapping) else None,
        rollout_id=_text(item.get("current_rollout_id")),
        attempt_id=_text(item.get("current_attempt_id")),
        heartbeat_time_s=_number(item.get("last_heartbeat_time")),
        busy_time_s=_number(item.get("last_busy_time")),
        idle_time_s=_number(item.get("last_idle_time")),
        dequeue_time_s=_number(item.get("last_dequeue_time")),
    )


def _rollouts(items: Sequence[Any]) -> tuple[Rollout, ...]:
    found: dict[str, Rollout] = {}
    for item in items:
        if isinstance(item, Mapping) and isinstance(item.get("rollout_id"), str) and isinstance(item.get("status"), str):
            attempt, config = _mapping(item.get("attempt")), _mapping(item.get("config"))
            found.setdefault(
                item["rollout_id"],
                Rollout(
                    rollout_id=item["rollout_id"],
                    status=item["status"],
                    start_time_s=_number(item.get("start_time")),
                    end_time_s=_number(item.get("end_time")),
                    timeout_s=_number(config.get("timeout_seconds")),
                    attempt_id=_text(attempt.get("attempt_id")),
                    attempt_status=_text(attempt.get("status")),
                    attempt_start_s=_number(attempt.get("start_time")),
                    worker_id=_text(attempt.get("worker_id")),
                    span_time_s=_number(attempt.get("last_heartbeat_time")),
                ),
            )
    return tuple(found.values())


def _with_spans(where: tuple[str, int], url: str, rollouts: tuple[Rollout, ...], until: float) -> tuple[tuple[Rollout, ...], list[Gap]]:
    """The rollouts with what their spans tell, as many as may be asked for."""
    wanted = sorted(rollouts, key=lambda r: (r.status not in OPEN, -(r.start_time_s or 0.0)))[:MAX_SPANS_OF]
    answers = _ask(where, [f"/spans?rollout_id={quote(r.rollout_id)}&limit={MAX_SPANS}" for r in wanted], until - 2.0)
    known = {r.rollout_id: _spans(r, a) for r, a in zip(wanted, answers, strict=True) if not isinstance(a, str)}
    silent = [a for a in answers if isinstance(a, str)]
    missing = [_gap(url, f"/spans of {len(silent)} rollouts", silent[0])] if silent else []
    return tuple(known.get(r.rollout_id, r) for r in rollouts), missing


def _spans(rollout: Rollout, answer: Any) -> Rollout:
    spans = [s for s in _items(answer) if isinstance(s, Mapping) and s.get("attempt_id") in (None, rollout.attempt_id)]
    numbers = {n for s in spans if (n := _whole(s.get("sequence_id"))) is not None and n > 0}
    is_all = len(_items(answer)) < MAX_SPANS
    names = [_text(s.get("name")) or "" for s in spans]
    rewards = [any(k.startswith("agentlightning.reward") for k in _mapping(s.get("attributes"))) or s.get("name") == _OURS[0] for s in spans]
    return msgspec.structs.replace(
        rollout,
        spans=len(spans) if is_all else None,
        missing_spans=max(numbers) - len(numbers) if numbers and is_all else None,
        has_reward=any(rewards) if is_all or any(rewards) else None,
        has_calls=any(n not in _OURS for n in names) if spans else None,
    )


def _proxies(resources: Sequence[Any], until: float) -> tuple[Proxy, ...]:
    """The endpoints of the newest resources, and whether a server listens there that speaks HTTP."""
    newest = next(iter(sorted((r for r in resources if isinstance(r, Mapping)), key=lambda r: -(_number(r.get("update_time")) or 0.0))), {})
    named = newest.get("resources")
    urls = [r.get("endpoint") for r in named.values() if isinstance(r, Mapping)] if isinstance(named, Mapping) else []
    found = []
    for url in dict.fromkeys(u for u in urls if isinstance(u, str)):
        try:
            parts = urlsplit(url)
            where = (parts.hostname or "", parts.port or 80)
        except ValueError:
            where = ("", 0)
        if parts.scheme != "http" or not where[0]:
            found.append(Proxy(url=url, reason="only plain HTTP is asked"))
            continue
        # an answer of any status is life; /health of the proxy would ask the engines behind it
        answer = get_all([Get(*where, parts.path.rstrip("/") + "/models")], min(until, time.monotonic() + 3.0), max_request=None)[0]
        found.append(Proxy(url=url, reason=answer) if isinstance(answer, str) else Proxy(url=url, status=answer.status))
    return tuple(found)


def _gap(url: str, path: str, reason: str) -> Gap:
    return Gap(id=gaps.STORE_UNREAD, where=url, what=path.partition("?")[0], reason=reason)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value[:200] if isinstance(value, str) else None
