"""What ``torchfrtrace`` finds in Flight Recorder dumps: a collective that not all ranks have joined, and its stack."""

from __future__ import annotations

import re

from ray_rl_debug.formats.dump import Said
from ray_rl_debug.formats.pasted.events import Head

_FIELD = re.compile(
    r"^\W{0,4}(?P<key>Not all ranks joining collective|group info|collective stack trace|collective(?! s)|missing ranks|expected ranks)\b"
    r"[^:{]{0,60}(?:: ?(?P<value>.{0,4000}))?$"
)
_MAX_RANKS = 4096


class Findings:
    """Fed with the lines of one text."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def feed(self, text: str) -> Head | None:
        """When the stack of the collective comes next: the ranks that wait there, and which are missing."""
        found = _FIELD.match(text) if "rank" in text or "collective" in text or "group" in text else None
        if found is None:
            return None
        key, value = found["key"], (found["value"] or "").strip()
        if key.startswith("Not all"):
            self._told = {key: value}
        self._told[key] = value
        if key != "collective stack trace":
            return None
        told, self._told = self._told, {}
        missing = _ranks(told.get("missing ranks", ""))
        expected = _ranks(told.get("expected ranks", ""))
        if not missing and not expected:
            return None
        lacking = ", ".join(map(str, missing)) or "?"
        text = f"the collective {told.get('collective') or '?'} of group {told.get('group info') or '?'} has not been joined by rank {lacking}"
        said = Said(kind="missing", text=text[:300], ranks=missing) if missing else None
        return Head(level="label", ranks=tuple(r for r in expected if r not in missing), is_new=True, said=said)


def _ranks(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(n) for n in re.findall(r"\d{1,6}", text)}))[:_MAX_RANKS]
