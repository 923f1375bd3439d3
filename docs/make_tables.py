"""Tables of the documents, made from what ``rayrl-debug explain`` says, so that they are never out of date: ``python docs/make_tables.py``.

It writes ``causes.md`` and ``known_errors.md``, and the tables between two marks in ``doctor.md``, ``slurm.md``, ``metrics.md`` and
``rollouts.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ray_rl_debug.commands.catalogue import explain, list_ids
from ray_rl_debug.metrics.thresholds import THRESHOLDS
from ray_rl_debug.rules import RULES

HERE = Path(__file__).resolve().parent
KNOWN_LINE = "RRD699"
"""The rule about known error lines, which have ids below and above it."""
CAUSES_HEAD = """\
# Causes

What the tool can name as the cause of a hang. This page is made from the rules themselves: `python docs/make_tables.py`.
`rayrl-debug explain RRD101` prints the same. *Not this when* says when something else is the cause.

Ids: RRD1xx collectives, RRD2xx rollout and reward, RRD3xx weight sync, RRD4xx Ray, RRD5xx process and host,
RRD6xx [known error lines](known_errors.md), RRD7xx [metrics](metrics.md), RRD8xx [checks of the doctor](doctor.md) and
[faults of job scripts](slurm.md), RRD9xx what could not be seen, and errors.
"""
ERRORS_HEAD = """\
# Known error lines

Lines that `rayrl-debug snapshot`, `report` and `doctor --logs` know in logs. This page is made from their signatures: `python docs/make_tables.py`.
"""


def parts(id_: str) -> dict[str, str]:
    """The heads of an explanation and what stands under them; the first line, without the id, is the head ``name``."""
    first, *rest = (explain(id_) or "").splitlines()
    found, head = {"name": first.removeprefix(id_).strip()}, ""
    for line in rest:
        if line.startswith("    "):
            found[head] = f"{found.get(head, '')} {line.strip()}".strip()
        elif line:
            head = line
    return found


def ids(first: str, last: str) -> list[str]:
    """The ids from `first` to before `last`, of the same length."""
    return [id_ for id_, _ in list_ids() if first <= id_ < last and len(id_) == len(first)]


def causes() -> Iterator[str]:
    """The page of causes: a table of all, then each in full."""
    rules = {id_: parts(id_) for id_ in sorted(rule.ID for rule in RULES)}
    yield CAUSES_HEAD
    yield from ("| id | cause | the story |", "| --- | --- | --- |")
    for id_, rule in rules.items():
        yield f"| [{id_}](#{anchor(id_, rule['name'])}) | {cell(rule['name'])} | {cell(sentence(rule['Story']))} |"
    for id_, rule in rules.items():
        yield from ("", f"## {id_} {rule['name']}", "", rule["Story"])
        for head in ("Evidence", "Remedy", "Not this when"):
            yield from ("", f"**{head}.** {rule[head]}")


def known_errors() -> Iterator[str]:
    """The page of known lines, by layer."""
    found: dict[str, list[tuple[str, dict[str, str]]]] = {}
    for id_ in (*ids("RRD600", KNOWN_LINE), *ids("RRD6000", "RRD7000")):
        line = parts(id_)
        layer = next(re.search(r"\(([\w-]+),", head)[1] for head in line if head.startswith("Known error line"))  # type: ignore[index]
        found.setdefault(layer, []).append((id_, line))
    yield ERRORS_HEAD.rstrip()
    for layer, lines in sorted(found.items()):
        yield from ("", f"## {layer}", "", "| id | what happened | why it usually happens | what to do |", "| --- | --- | --- | --- |")
        for id_, line in lines:
            yield f"| {id_} | {cell(line['name'])} | {cell(line['Cause'])} | {cell(line['Remedy'])} |"


def checks() -> Iterator[str]:
    """Rows of the doctor's checks."""
    yield from ("| id | check | finds | remedy |", "| --- | --- | --- | --- |")
    for id_ in ids("RRD800", "RRD850"):
        check = parts(id_)
        yield f"| {id_} | `{check['Check of the doctor']}` | {cell(check['name'])} | {cell(check['Remedy'])} |"


def faults() -> Iterator[str]:
    """Rows of the faults of job scripts."""
    yield from ("| id | fault | why it fails |", "| --- | --- | --- |")
    for id_ in ids("RRD850", "RRD900"):
        fault = parts(id_)
        reason = next(text for head, text in fault.items() if head.startswith("Fault of a job script"))
        yield f"| {id_} | {cell(fault['name'])} | {cell(reason)} |"


def metric_rules() -> Iterator[str]:
    """Rows of the rules of metrics."""
    yield from ("| id | finds | what it means | what to do |", "| --- | --- | --- | --- |")
    for id_ in ids("RRD700", "RRD800"):
        rule = parts(id_)
        yield f"| {id_} | {cell(rule['name'])} | {cell(rule['Story'])} | {cell(rule['Remedy'])} |"


def thresholds() -> Iterator[str]:
    """Rows of the thresholds of metrics."""
    yield from ("| threshold | default | meaning | source |", "| --- | --- | --- | --- |")
    for name, threshold in THRESHOLDS.items():
        yield f"| `{name}` | {threshold.value:g} | {cell(threshold.meaning)} | {cell(threshold.source)} |"


def findings() -> Iterator[str]:
    """Rows of what is found in rollouts."""
    yield from ("| id | finding | what it is | remedy |", "| --- | --- | --- | --- |")
    for id_ in ids("RRD220", "RRD250"):
        found = parts(id_)
        yield f"| {id_} | {cell(found['name'])} | {cell(sentence(found['Story']))} | {cell(found['Remedy'])} |"


def pages() -> dict[Path, str]:
    """All pages as they should be."""
    made = {HERE / "causes.md": "\n".join(causes()) + "\n", HERE / "known_errors.md": "\n".join(known_errors()) + "\n"}
    tables = (
        ("doctor.md", "checks", checks()),
        ("slurm.md", "faults", faults()),
        ("metrics.md", "rules", metric_rules()),
        ("metrics.md", "thresholds", thresholds()),
        ("rollouts.md", "findings", findings()),
    )
    for name, mark, rows in tables:
        text = made.get(HERE / name) or (HERE / name).read_text(encoding="utf-8")
        before, after = text.partition(f"<!-- {mark} -->")[0], text.partition(f"<!-- end of {mark} -->")[2]
        table = "\n".join(rows)
        made[HERE / name] = f"{before}<!-- {mark} -->\n\n{table}\n\n<!-- end of {mark} -->{after}"
    return made


def sentence(text: str) -> str:
    """The first sentence, without its full stop."""
    return re.split(r"(?<=\w)\. (?=[A-Z])", text)[0].rstrip(".")


def anchor(id_: str, name: str) -> str:
    """The link that code hosts give to a heading."""
    return re.sub(r"[^\w -]", "", f"{id_} {name}").lower().replace(" ", "-")


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
