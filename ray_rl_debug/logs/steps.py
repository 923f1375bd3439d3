"""Lines that count the work done: training steps, iterations, batches of a progress bar."""

from __future__ import annotations

import re

BAR = "it"
"""What a progress bar counts."""
_METRIC = r"loss|reward|\blr\b|grad|entropy|\bkl\b|acc|score|mfu|throughput|tokens"
STEP = re.compile(
    r"(?<![\w./-])(?<!job )(?<!After )(?<!Since )(?<!Until )(?P<unit>(?:training/)?global_steps?|train(?:ing)?[ _]steps?"
    r"|[Ss]tep|STEP|[Ii]ter(?:ation)?|[Ee]poch|[Uu]pdate|[Ee]pisode|[Rr]ound|batch|model[_ ]version|weight_version)"
    r"[\"']?\s{0,3}[:=# ]\s{0,3}\[?(?P<step>\d{1,12}(?:\.\d+)?)"
    rf"(?!\.?\d|\w|:(?! ?[\w/.-]*(?:{_METRIC})| [\w/.-]+ (?:{_METRIC})[ =:]+-?\d))"
    r"|(?P<done>\d{1,12})/(?P<all>\d{1,12}) \[\d\d?:\d\d"
)
"""``step:12 - …``, ``global_step=12``, ``iteration 5/100``, ``Epoch 3``, ``step 12: loss`` and tqdm's ``12/50 [01:55<``.

No ``Step 2: add both``, which answers of models hold, no ``job step 88.0``, which is a number of Slurm's, and no ``After step 212 it
hangs``, which a person says."""
_HANGS_AT = re.compile(
    r"\b(?:hang(?:s|ing)?|hung|stuck|freez(?:es|ing)|froze|stall(?:s|ed)|wedged) (?:at|in|on|after|around|near|during) (?:[a-z]+ )?$"
)
"""``it hangs at step 143``: that step was not done, and a person says so."""


def read_step(text: str) -> tuple[float, str] | None:
    """The count in a line and the word beside it; the finest unit when there are several."""
    best: tuple[int, float, str] | None = None
    for found in STEP.finditer(text[:2000]):
        if _HANGS_AT.search(text, max(0, found.start() - 40), found.start()) is not None:
            continue
        if found["done"] is not None:
            one = (1, float(found["done"]), BAR)
        else:
            unit = found["unit"].lower().removeprefix("training/").removesuffix("s")
            one = (0 if "step" in unit or unit.startswith("iter") else 2, float(found["step"]), unit)
        if best is None or one[0] < best[0]:
            best = one
    return None if best is None else (best[1], best[2])
