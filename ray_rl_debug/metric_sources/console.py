"""What verl and AReaL print, also through the prefixes and colours that Ray puts before each line.

verl: one line for each step, ``step:3 - actor/grad_norm:0.40 - ...``. AReaL: ``Epoch 1/1 Step 3/10 Train step 3/10 done.``, and after it a table
in a frame whose rows hold four pairs of name and value. Both forms may stand in one file. Where neither stands there, `printed` looks for the
forms of other families.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ray_rl_debug.metric_sources.gathered import Gathered, as_number
from ray_rl_debug.metric_sources.lines import read_lines
from ray_rl_debug.metric_sources.printed import MAX_MAPPING, Printed

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_REPEATED = re.compile(r"(?<!\s)\s*\[repeated \d+x across [^\]]{0,80}\]\s*(?:\([^)]*\)\s*)?$")
"""What Ray adds to a line that several processes wrote."""
_VERL = re.compile(r"(?:^|[\s\])>])step:(\d{1,15}) - (?=\S+:)")
_AREAL = re.compile(r"Train step (\d{1,15})/\d+ done")
_ROLLOUTS = re.compile(r"\brunning: (\d{1,15}), accepted: (\d{1,15}), rejected: (\d{1,15})\b")
"""Of AReaL's executor, with ``enable_rollout_tracing``."""
_ENDED = ("Training completes!", "Final validation metrics:")
_SETTING = re.compile(r"'(ppo_n_minibatches|behave_imp_weight_cap|max_head_offpolicyness)': ([\w.+-]+)[,}]")
"""Settings that rules ask for, in the configuration that a trainer prints at its start."""
NAMES_OF_ROW = re.compile(r"^[A-Za-z_][^\s:]*")


def read(path: Path, into: Gathered, names: Mapping[str, str]) -> None:
    """All steps that the log tells."""
    cut: list[str] = []
    step: int | None = None
    verl = areal = 0
    # Logs of verl and AReaL hold lines of other forms as well (engines, warnings): theirs are the only ones that count there.
    others = None if _is_known(path) else Printed(into)
    for raw in read_lines(path, cut):
        line = _COLOUR.sub("", raw) if "\x1b" in raw else raw
        found = _VERL.search(line) if "step:" in line else None
        if found is not None:
            verl += 1
            _verl_line(int(found[1]), line[found.end() :], into)
        elif "│" in line and step is not None:
            _areal_row(step, line, into)
        elif "Train step" in line and (done := _AREAL.search(line)) is not None:
            step = int(done[1])
            areal += 1
        elif any(words in line for words in _ENDED):
            into.is_ended = True
        elif "rejected: " in line and (counts := _ROLLOUTS.search(line)) is not None:
            into.count_rollouts(*map(int, counts.groups()))
        elif others is not None:
            _shared_screen(line, others)
        if "': " in line:
            for key, value in _SETTING.findall(line):
                into.settings.setdefault(key, value)
    form = " and ".join(n for n, count in (("verl", verl), ("AReaL", areal)) if count) or "no framework that is known"
    if others is not None:
        others.end()
    if others is not None and others.reports:
        into.sources.append(f"{path.name}: console, {others.reports:,} reports")
        if others.counted:
            into.sources.append(f"{path.name} tells no step: its reports are counted, 1 to {others.counted:,}")
    else:
        into.sources.append(f"{path.name}: console of {form}, {verl + areal:,} steps")
    for reason in cut:
        into.trouble(str(path), reason)


def _is_known(path: Path) -> bool:
    """Does a line of verl or AReaL stand in it?"""
    return any(_VERL.search(_COLOUR.sub("", line)) or _AREAL.search(line) for line in read_lines(path, []) if "step:" in line or "Train step" in line)


def _shared_screen(line: str, others: Printed) -> None:
    """A progress bar goes back to the beginning of its line with a carriage return: what follows it is a line of its own."""
    if len(line) > MAX_MAPPING:
        return  # data, not what a person is to read
    for part in _REPEATED.sub("", line).split("\r"):
        others.take(part)


def _verl_line(step: int, rest: str, into: Gathered) -> None:
    for pair in _REPEATED.sub("", rest).split(" - "):
        name, colon, value = pair.strip().rpartition(":")
        if not colon or NAMES_OF_ROW.match(name) is None:
            continue
        if value == "None":
            into.add(step, name, None)
        elif (number := as_number(value)) is not None:
            into.add(step, name, number)


def _areal_row(step: int, line: str, into: Gathered) -> None:
    cells = [c.strip() for c in line[line.index("│") :].strip().strip("│").split("│")]
    for name, value in zip(cells[::2], cells[1::2], strict=False):
        if name and (number := as_number(value)) is not None:
            into.add(step, name, number)
