"""How the faults of a job script look: each finder gives the lines where its fault is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from ray_rl_debug.slurm.script import Line, Script

Finder = Callable[[Script], Iterator[Line]]

_SRUN = re.compile(r"(?:^|[\s;&|({])srun\s")
_RAY_START = re.compile(r"\bray\s+start\b")
_DRIVER = re.compile(r"\bpython[\d.]*\s+(?:-\S+\s+)*\S")
_READY = r"ray\s+(?:status|health-check)|get_all_node_info|node_table|ray\.nodes\(|wait_for_nodes|GcsClient|list\s+nodes"
_LIMIT = r"SECONDS|\btimeout\b|-g[te]\s|>=?\s*\w*(?:max|MAX|limit|LIMIT)|\(\(\s*\w+\s*[<>]"
MAX_TEMP_DIR_BYTES = 44


def where(pattern: str | re.Pattern[str], *, unless: str | None = None) -> Finder:
    """Lines that match, and do not hold `unless`; both looked for with variables put in."""
    wanted, spared = re.compile(pattern), re.compile(unless) if unless else None

    def find(script: Script) -> Iterator[Line]:
        for line in script.lines:
            if wanted.search(line.expanded) and not (spared and spared.search(line.expanded)):
                yield line

    return find


def first(lines: Iterator[Line]) -> Iterator[Line]:
    for line in lines:
        yield line
        return


def _starts_ray(script: Script) -> bool:
    return any(_RAY_START.search(line.text) for line in script.lines)


def _ray_steps(script: Script) -> Iterator[Line]:
    """srun lines of a script that starts Ray. A step whose program is in another line counts too: it may be the one that runs Ray."""
    return (
        (x for x in script.lines if _SRUN.search(x.text) and "hostname" not in x.text)
        if _starts_ray(script) or script.has("symmetric-run")
        else iter(())
    )


def quoted_array(script: Script) -> Iterator[Line]:
    if script.has(r"scontrol\s+show\s+hostname"):
        yield from where(r"^\s*(?:\w+\s+)?\w+=\(\s*\"\$(?:\{?\w+\}?|\(\s*scontrol[^)]*\))\"\s*\)")(
            Script(lines=tuple(msgspec.structs.replace(x, expanded=x.text) for x in script.lines), directives={}, text="")
        )


def without_cpus(script: Script) -> Iterator[Line]:
    if not script.has(r"SRUN_CPUS_PER_TASK="):
        yield from (s for s in _ray_steps(script) if not re.search(r"\s(?:-c[\s\d=$\"]|--cpus-per-task)", s.expanded))


def without_bind(script: Script) -> Iterator[Line]:
    if not script.has(r"SLURM_CPU_BIND=[\"']?none"):
        yield from (s for s in _ray_steps(script) if not re.search(r"--cpu[-_]bind[= ][\"']?(?:\w+,)?none", s.expanded))


def unset_cpus(script: Script) -> Iterator[Line]:
    asked = {"cpus-per-task", "cpus-per-gpu"} & set(script.directives)
    if not asked and not script.has(r"\$\{SLURM_CPUS_PER_TASK:[-?=+]"):
        yield from first(where(r"\$\{?SLURM_CPUS_PER_TASK\b")(script))


def sleep_for_ready(script: Script) -> Iterator[Line]:
    starts = [line.number for line in script.lines if _RAY_START.search(line.text)]
    for line in script.lines:
        if starts and line.number >= starts[0] and not {"while", "until"} & set(line.loops) and re.search(r"(?:^|[;&|]|\s)sleep\s+\d", line.text):
            yield line


def fixed_port(script: Script) -> Iterator[Line]:
    if _starts_ray(script):
        yield from where(r"(?i)(?:^|\s|--|_)port[= ]\"?6379\b")(
            Script(lines=tuple(msgspec.structs.replace(x, expanded=x.text) for x in script.lines), directives={}, text="")
        )
        if not script.has(r"(?i)--port\b|port="):
            yield from first(where(r"\bray\s+start\b.*--head")(script))


def _background_rays(script: Script) -> list[Line]:
    return [x for x in script.lines if x.is_background and (_SRUN.search(x.text) or _RAY_START.search(x.text))] if _starts_ray(script) else []


def no_trap(script: Script) -> Iterator[Line]:
    if not script.has(r"(?:^|[\s;])trap\s"):
        yield from first(iter(_background_rays(script)))


def no_liveness(script: Script) -> Iterator[Line]:
    if not script.has(r"wait\s+-n|kill\s+-0|wait\s+\"?\$\{?!?\w*(?:PID|pid)"):
        yield from first(iter(_background_rays(script)))


def tee(script: Script) -> Iterator[Line]:
    if not script.has(r"pipefail|PIPESTATUS"):
        yield from where(r"[^>(|]\|&?\s*tee\b")(script)


def unset_gpus(script: Script) -> Iterator[Line]:
    asked = set(script.directives)
    for variable, option in (("SLURM_GPUS_PER_TASK", "gpus-per-task"), ("SLURM_GPUS_PER_NODE", "gpus-per-node")):
        if option not in asked and not script.has(rf"\$\{{{variable}:[-?=+]"):
            yield from first(where(rf"\$\{{?{variable}\b")(script))


def typed_gpus(script: Script) -> Iterator[Line]:
    for variable, option in (("SLURM_GPUS_PER_TASK", "gpus-per-task"), ("SLURM_GPUS_PER_NODE", "gpus-per-node")):
        if ":" in script.directives.get(option, (0, ""))[1] and not script.has(rf"\$\{{{variable}##?\*"):
            yield from first(where(rf"\$\{{?{variable}\b")(script))


def overlap_memory(script: Script) -> Iterator[Line]:
    for line in script.lines:
        if _SRUN.search(line.text) and "--overlap" in line.expanded and not re.search(r"--mem[= ]0\b", line.expanded):
            yield line


def second_step(script: Script) -> Iterator[Line]:
    before = False
    for line in script.lines:
        if _SRUN.search(line.text) and before and not line.is_background and "--overlap" not in line.expanded:
            yield line
        before = before or (line.is_background and _SRUN.search(line.text) is not None and "--overlap" not in line.expanded)


def ray_stop(script: Script) -> Iterator[Line]:
    if "exclusive" not in script.directives:
        yield from where(r"\bray\s+stop\b|\bray\s+symmetric-run\b")(script)


def no_address(script: Script) -> Iterator[Line]:
    if not _starts_ray(script) or script.has(r"\bRAY_ADDRESS=|ray\s+job\s+submit"):
        return
    last = max(line.number for line in script.lines if _RAY_START.search(line.text))
    drivers = [x for x in script.lines if x.number > last and _DRIVER.search(x.text) and not re.search(r"--address|python[\d.]*\s+-c\b", x.text)]
    yield from drivers[:1]


def num_cpus_twice(script: Script) -> Iterator[Line]:
    if _starts_ray(script):
        yield from where(r"ray_init\.num_cpus\s*=|init\(.*num_cpus\s*=")(script)


def no_token(script: Script) -> Iterator[Line]:
    many = script.directives.get("nodes", (0, "2"))[1] != "1"
    if _starts_ray(script) and many and not script.has(r"RAY_AUTH_MODE="):
        yield from first(where(_RAY_START)(script))


def temp_dir(script: Script) -> Iterator[Line]:
    if not script.has(r"--temp-dir|RAY_TMPDIR="):
        yield from first(where(r"\bray\s+start\b.*--head")(script))


def long_temp_dir(script: Script) -> Iterator[Line]:
    for line in script.lines:
        found = re.search(r"--temp-dir[= ]\"?'?(/[^\s\"']+)", line.expanded)
        if found and "$" not in found[1] and len(found[1].encode()) > MAX_TEMP_DIR_BYTES:
            yield line


def unbounded(script: Script) -> Iterator[Line]:
    if _starts_ray(script) and script.has(_READY) and not script.has(_LIMIT):
        yield from first(where(_READY)(script))


def output_to_null(script: Script) -> Iterator[Line]:
    number, value = script.directives.get("output", (0, ""))
    if value == "/dev/null":
        yield Line(number=number, text=f"#SBATCH --output={value}", expanded="")
