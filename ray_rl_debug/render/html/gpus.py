"""One meter a GPU at the moment of the capture: how much it is used, at which power. Use without power is a collective that spins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ray_rl_debug.model.snapshot import Gpu, Node, Snapshot
from ray_rl_debug.render.html.text import count, esc, name, size

MAX_GPUS = 4096
MAX_WRITTEN = 64
"""GPUs up to which each meter has its numbers beside it; with more, a node has one line of them."""
_COOL = 0.4
"""Share of the power limit under which a fully used GPU does no arithmetic: it spins in a collective."""


def draw(snapshot: Snapshot) -> str:
    """Meters by node; where there are many, the nodes that differ from the most common picture come first."""
    nodes = [n for n in snapshot.nodes if n.gpus]
    total = sum(len(n.gpus or ()) for n in nodes)
    if not nodes:
        return "<h3>GPUs</h3><p class=none>No GPU was read.</p>"
    written = total <= MAX_WRITTEN
    left = MAX_GPUS
    blocks: list[tuple[bool, str]] = []
    pictures = {n.name: tuple(_picture(g) for g in n.gpus or ()) for n in nodes}
    usual = Counter(pictures.values()).most_common(1)[0][0]
    for node in nodes:
        shown = (node.gpus or ())[:left]
        left -= len(shown)
        if shown:
            blocks.append((not written and pictures[node.name] == usual, _host(node, shown, written=written)))
    blocks.sort(key=lambda b: b[0])
    hosts = "".join(text for _, text in blocks)
    more = f"<p class=note>{count(total - MAX_GPUS, 'more GPU')} not drawn.</p>" if total > MAX_GPUS else ""
    cool = any(_is_cool(g) for n in nodes for g in n.gpus or ())
    hint = "<p class=note>A GPU that is fully used at little power (striped) spins in a collective and computes nothing.</p>" if cool else ""
    order = "" if written else ", nodes that stand out first"
    kind = "hosts" if written else "hosts dense"
    grid = f'<div class="{kind}" role=region tabindex=0 aria-label=GPUs>{hosts}</div>'
    return f"<h3>GPUs <i>at the capture: use and power{order}</i></h3>{grid}{more}{hint}"


def _host(node: Node, gpus: Sequence[Gpu], *, written: bool) -> str:
    told = "" if written else f" <i>{_range([g.utilization_percent for g in gpus], '%')} {_range([g.power_watts for g in gpus], ' W')}</i>"
    meters = "".join(_meter(g, written=written) for g in gpus)
    return f"<div class=host><b>{name(node.name, 60)}{told}</b><div class=gpus>{meters}</div></div>"


def _range(values: Sequence[float | None], unit: str) -> str:
    known = [v for v in values if v is not None]
    if not known:
        return "–"
    low, high = f"{min(known):.0f}", f"{max(known):.0f}"
    return f"{low}{unit}" if low == high else f"{low}–{high}{unit}"


def _picture(gpu: Gpu) -> tuple[int | None, bool, bool]:
    use = gpu.utilization_percent
    return (None if use is None else round(use / 25), _is_cool(gpu), bool(gpu.xid or gpu.ecc_uncorrected))


def _is_cool(gpu: Gpu) -> bool:
    busy = gpu.utilization_percent is not None and gpu.utilization_percent >= 90
    return busy and gpu.power_watts is not None and bool(gpu.power_limit_watts) and gpu.power_watts < _COOL * (gpu.power_limit_watts or 0)


def _meter(gpu: Gpu, *, written: bool) -> str:
    use = gpu.utilization_percent
    watts = "–" if gpu.power_watts is None else f"{gpu.power_watts:.0f} W"
    tip = f"GPU {gpu.index} {gpu.name}: {'–' if use is None else f'{use:.0f} %'}, {watts}"
    tip += f" of {gpu.power_limit_watts:.0f} W" if gpu.power_limit_watts else ""
    tip += f", {size(gpu.memory_used_bytes)} of {size(gpu.memory_total_bytes)}"
    tip += f", throttled: {', '.join(gpu.throttle_reasons)}" if gpu.throttle_reasons else ""
    tip += f", Xid {gpu.xid}" if gpu.xid else ""
    height = 0.0 if use is None else 24 * min(100.0, max(0.0, use)) / 100
    bar = f'<rect class="{"cool" if _is_cool(gpu) else "level"}" x="0" y="{24 - height:.1f}" width="30" height="{height:.1f}"/>'
    bad = " bad" if gpu.xid or gpu.ecc_uncorrected else ""
    drawing = f'<svg viewBox="0 0 30 24" preserveAspectRatio="none" aria-hidden="true">{bar}</svg>'
    words = f"<b>{'–' if use is None else f'{use:.0f}%'}</b><i>{watts}</i>" if written else ""
    return f'<span class="gpu{bad}" title="{esc(tip, 300)}">{drawing}{words}</span>'
