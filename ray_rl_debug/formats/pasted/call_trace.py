"""vLLM's trace of function calls (``VLLM_TRACE_FUNCTION=1``): the last line is where the process is."""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted.events import Frames

_PLACE = r"(?P<{0}_function>\S{{1,200}}) in (?P<{0}_file>\S{{1,400}}):(?P<{0}_line>\d{{1,7}})"
_LINE = re.compile(r"^\s*(?P<what>Call to|Return from) " + _PLACE.format("first") + r" (?:from|to) " + _PLACE.format("second") + r"\s*$")


def read(text: str) -> Frames | None:
    """The frames that one call or return tells, innermost first."""
    found = _LINE.match(text) if "Call to" in text or "Return from" in text else None
    if found is None:
        return None
    first = (found["first_function"], found["first_file"], int(found["first_line"]))
    second = (found["second_function"], found["second_file"], int(found["second_line"]))
    places = (first, second) if found["what"] == "Call to" else (second,)
    return Frames(places=places, source="call-trace", order="inner", is_whole=True, is_certain=True)
