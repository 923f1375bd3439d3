"""What trainers of other families print: read by the shape of the lines, not by the name of the trainer.

- A mapping, as Python or JSON writes it: ``{'loss': 0.1, 'reward': 0.4}`` (the Trainer of Hugging Face and TRL), also behind a word and the number of
  the step: ``step 5: {...}`` (OpenRLHF, slime).
- Pairs behind a step: ``Step 12 | Loss: 0.1 | Grad. Norm: 0.5`` or ``[step 12] loss=0.1 kl=0.02``.
- A heading with the step, and a list under it: ``=== Step 5/100 ===``, ``Timing:``, ``- generation: 15.2s`` (NeMo-RL); or a block whose names are set
  to the right: ``Learning iteration 5/100``, ``Mean reward: 12.3`` (rsl_rl).
- A table of two columns in a frame, with sections: ``| train/ | |``, ``|    loss | 20.1 |`` (Stable-Baselines3).
- A table with a heading, a row for each step: ``| Step | Training Loss | reward |`` (notebooks).
- Pairs of a line of their own behind one that tells the step: ``Average reward score: 0.4 | EMA reward score: 0.4`` (DeepSpeed-Chat).

Where the log tells no step, its reports are counted: a name that comes again begins the next one.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

from ray_rl_debug.metric_sources.gathered import STEP_NAMES, Gathered, as_number, flat
from ray_rl_debug.metric_sources.headed_table import HeadedTable
from ray_rl_debug.metrics.quantities import Quantity, find

MAX_MAPPING = 200_000
"""Characters; a longer one is data, not the report of a step."""
MAX_TEXT = 20_000
"""Characters of any other line; a longer one is no report either, and to look for pairs in it costs time."""
LEARNING = (Quantity.LOSS, Quantity.REWARD, Quantity.TEST_REWARD, Quantity.GRAD_NORM, Quantity.POLICY_KL, Quantity.REFERENCE_KL, Quantity.ENTROPY)
"""A report of training has at least one of them; the answer to a request or a configuration has none of it step after step."""
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|nan|-?inf(?:inity)?"
_STEP = r"(?:learning iteration|global[ _]step|training[ _]step|train[ _]step|step|iteration|iter)"
_BEFORE = re.compile(rf"(?:\b{_STEP}[ =:#]*|\b(?:rollout|perf|train|eval) +)(\d{{1,15}})(?:\s*/\s*\d+)?\W*$", re.IGNORECASE)
"""The words before a mapping that number it; ``train:201`` is a line of the source, as loggers write it."""
_HEADING = re.compile(rf"^\W*{_STEP}[ =:#]*(\d{{1,15}})(?:\s*/\s*\d+)?\W*$", re.IGNORECASE)
_LINE = re.compile(rf"(?:^|[\s\[(|:]){_STEP}[ =:#]*(\d{{1,15}})(?:\s*/\s*\d+)?(?=[\s\])|,:;-])", re.IGNORECASE)
_PAIR = re.compile(rf"([A-Za-z][\w./@()% -]{{0,80}}?)\s*[:=]\s*({_NUMBER})(?![\w.:]*[:/]\d)(?=[A-Za-z%/\s,;|)\]]|$)", re.IGNORECASE)
_IN_BRACKETS = re.compile(rf"(?<=[:=])\s*\[\s*({_NUMBER})\s*\]", re.IGNORECASE)
"""An array of one number."""
_WHOLE_PAIR = re.compile(rf"\s*([A-Za-z][\w./@()% -]{{0,80}}?)\s*[:=]\s*({_NUMBER})\s*", re.IGNORECASE)
_ROW = re.compile(rf"^\s*[-*\u2022]\s+([^:=]{{1,80}}?)\s*[:=]\s*({_NUMBER})\s*(?:[A-Za-z%/]+)?\s*(?:\([^)]*\))?\s*$", re.IGNORECASE)
_INDENTED = re.compile(rf"^\s{{4,}}([A-Za-z][^:=]{{0,80}}?)\s*:\s*({_NUMBER})\s*$", re.IGNORECASE)
"""An entry of a block whose names are set to the right, under a heading with the step."""
_SECTION = re.compile(r"^\W*([A-Za-z][\w -]{1,40}):\s*$")
_CELLS = re.compile(r"^\s*\|\s*(\S[^|]*?)\s*\|\s*([^|]*?)\s*\|\s*$")
_RULED = re.compile(r"^\s*[-+=]{5,}\s*$")
_SAME = frozenset(("epoch",))
"""Names that stand in each report of a step, whatever it reports."""
_NOT_A_NUMBER = re.compile(r"(?<![\w'\"])(-?)(nan|inf(?:inity)?)(?![\w'\"])", re.IGNORECASE)
_WRAPPED = re.compile(rf"\b(?:np\.|numpy\.|torch\.)?(?:float\d*|int\d*|tensor)\(\s*({_NUMBER})(?![\d.])[^()]*\)", re.IGNORECASE)
_OVER = "train_runtime"
"""The Trainer of Hugging Face sums up with it at the end of the run."""


class Printed:
    """The reader of one log, line by line."""

    def __init__(self, into: Gathered) -> None:
        self.reports = 0
        self.counted = 0
        """Reports whose step the log does not tell."""
        self._into = into
        self._headed = HeadedTable()
        self._step: int | None = None
        self._told: int | None = None
        """The step of the last line of pairs."""
        self._section = ""
        self._seen: set[str] = set()
        self._table: dict[str, Any] = {}

    def take(self, line: str) -> None:
        """One line, without colours."""
        if "{" in line and "}" in line:
            self._mapping(line)
            return
        if len(line) > MAX_TEXT:
            return
        text = _without_prefix(line)
        if (row := self._headed.take(text)) is not None:
            self._row(*row)
        elif (cells := _CELLS.match(text)) is not None:
            self._cells(cells[1], cells[2])
        elif self._table and _RULED.match(text) is not None:
            self._end_table()
        elif (heading := _HEADING.match(text)) is not None:
            self._step, self._section = int(heading[1]), ""
        elif self._step is not None and (entry := _ROW.match(text) or _INDENTED.match(text)) is not None:
            self._put(self._step, {self._section + plain(entry[1]): as_number(entry[2])})
        elif self._step is not None and (section := _SECTION.match(text)) is not None:
            self._section = plain(section[1]) + "/"
        elif ":" in text or "=" in text:
            self._pairs(text)

    def end(self) -> None:
        """The log is over: a table that was not closed counts."""
        self._end_table()

    def _mapping(self, line: str) -> None:
        start, stop = line.index("{"), line.rindex("}") + 1
        if not 4 < stop - start < MAX_MAPPING or ":" not in line[start:stop]:
            return
        before = _BEFORE.search(line[max(0, start - 80) : start])
        found = _as_mapping(line[start:stop])
        if found is None:
            return
        if _OVER in found:
            self._into.is_ended = True
            return
        values = dict(flat(found))
        if before is not None and not any(name in values for name in STEP_NAMES):
            self._put(int(before[1]), values)
        else:
            self._unnumbered(values)

    def _unnumbered(self, values: Mapping[str, float | None]) -> None:
        """A report that may hold its step, or is counted."""
        if len(values) < 2 or not ("epoch" in values or _is_learning(values)):
            return
        for name in STEP_NAMES:
            step = values.get(name)
            if step is not None and step == step and 0 <= step < 1 << 53:
                self._put(int(step), {n: v for n, v in values.items() if n not in STEP_NAMES})
                return
        names = values.keys() - _SAME
        if not self.counted or names & self._seen:
            self.counted += 1
            self._seen = set()
        self._seen |= names
        self._put(self.counted, values)

    def _pairs(self, text: str) -> None:
        step = _LINE.search(text)
        if step is None:
            self._more_pairs(text)
            return
        rest = _IN_BRACKETS.sub(r"\1", text[step.end() :])
        values: dict[str, float | None] = {}
        for part in re.split(r"\s*[|,;]\s*|\s+-\s+", rest):
            for name, value in _PAIR.findall(part):
                # Between pairs without a mark, what stands before the last blank is the end of the value before.
                key = name.split()[-1] if f"{name}=" in part else name
                values[plain(key)] = as_number(value)
        if _is_learning(values) and (len(values) > 1 or _is_bare(rest)):
            self._told = int(step[1])
            self._put(self._told, values)

    def _more_pairs(self, text: str) -> None:
        """A line of nothing but pairs, of the step that a line before it told."""
        pairs = [_WHOLE_PAIR.fullmatch(part) for part in text.split("|")]
        values = {plain(pair[1]): as_number(pair[2]) for pair in pairs if pair is not None}
        if self._told is not None and None not in pairs and _is_learning(values):
            self._put(self._told, values)

    def _row(self, step: int, cells: Mapping[str, float]) -> None:
        values = {plain(name): value for name, value in cells.items()}
        if _is_learning(values):
            self._put(step, values)

    def _cells(self, name: str, value: str) -> None:
        if not value:
            self._section = name if name.endswith("/") else f"{name}/"
        elif (number := as_number(value)) is not None:
            self._table[f"{self._section}{name}" if self._section and not name.startswith(self._section) else name] = number

    def _end_table(self) -> None:
        table, self._table, self._section = self._table, {}, ""
        if table:
            self._unnumbered(table)

    def _put(self, step: int, values: Mapping[str, float | None]) -> None:
        if values:
            self.reports += 1
            self._into.add_row(step, values)


def plain(label: str) -> str:
    """A label for people as a name: ``Grad. Norm`` is ``grad_norm``; a name stays as it is."""
    if re.fullmatch(r"[a-z_][\w./@-]*", label):
        return label
    return re.sub(r"[^a-z0-9/@]+", "_", label.lower()).strip("_")


def _is_bare(rest: str) -> bool:
    """Nothing but one pair stands behind the step: no sentence."""
    return _WHOLE_PAIR.fullmatch(rest.strip(" ,;|)]-")) is not None


def _is_learning(values: Mapping[str, object]) -> bool:
    return any(find(q, values) for q in LEARNING)


def _without_prefix(line: str) -> str:
    """Without ``(Actor pid=1, ip=...)``, which Ray puts before a line."""
    return re.sub(r"^\s*\([^)]*\bpid=\d+[^)]*\)\s?", "", line).rstrip("\n")


def _as_mapping(text: str) -> dict[str, Any] | None:
    """A mapping with texts as keys, as JSON or Python writes it; nothing of it is run."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        quoted = _NOT_A_NUMBER.sub(r"'\1\2'", _WRAPPED.sub(r"\1", text))
        try:
            found = ast.literal_eval(quoted)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return None
    if not isinstance(found, dict) or not all(isinstance(k, str) for k in found):
        return None
    return found
