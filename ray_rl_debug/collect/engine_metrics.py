"""Numbers of vLLM and SGLang in the text that Prometheus reads. Only numbers are taken; names of models stay there."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable

MAX_LINE = 4096
_ROW = re.compile(r"(?:vllm|sglang):(\w+)(?:\{(.*)\})? ([-+.\w]+)")
_SAME = re.compile(r'(?:tp|pp|moe_ep|attn_tp|attn_cp|moe_dp)_rank="\d+",?|pid="\d+",?')
"""Labels of ranks that tell of the same requests; those of data parallel have requests of their own."""

_GAUGES: dict[str, tuple[tuple[str, ...], Callable[[Iterable[float]], float]]] = {
    "running": (("num_requests_running", "num_running_reqs"), sum),
    "waiting": (("num_requests_waiting", "num_queue_reqs"), sum),
    "kv_usage": (("kv_cache_usage_perc", "gpu_cache_usage_perc", "token_usage"), max),
    "generated_tokens": (("realtime_tokens_total decode", "generation_tokens_total"), sum),
    "preemptions": (("num_preemptions_total", "num_preemptions"), sum),
}
"""What they are called, the best name first: SGLang's ``generation_tokens_total`` counts a request when it ends."""
_SLEEP = {"awake": 0, "weights_offloaded": 1, "discard_all": 2}


def read_metrics(text: bytes) -> dict[str, float]:
    """`running`, `waiting`, `kv_usage`, `generated_tokens`, `preemptions`, `sleep_level`, as far as they are told."""
    rows: dict[str, dict[str, float]] = {}
    for line in text.decode("utf-8", "replace").splitlines():
        if not line.startswith(("vllm:", "sglang:")) or len(line) > MAX_LINE:
            continue
        row = _ROW.match(line)
        value = _number(row[3]) if row else None
        if row is None or value is None:
            continue
        labels = _SAME.sub("", row[2] or "")
        name = f"{row[1]} decode" if 'mode="decode"' in labels else row[1]
        values = rows.setdefault(name, {})
        values[labels] = max(value, values.get(labels, 0.0))
    found = {}
    for field, (names, total) in _GAUGES.items():
        name = next((n for n in names if n in rows), None)
        if name is not None:
            found[field] = float(total(rows[name].values()))
    levels = [level for state, level in _SLEEP.items() for labels, v in rows.get("engine_sleep_state", {}).items() if v and f'"{state}"' in labels]
    if levels:
        found["sleep_level"] = float(max(levels))
    return found


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value < 1e15 else None
