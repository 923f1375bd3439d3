"""Faults as text, as one JSON document, and as SARIF 2.1.0 for code hosts."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from ray_rl_debug import __version__
from ray_rl_debug.slurm.lint import Fault
from ray_rl_debug.slurm.lint_rules import RULES

SCHEMA = "rayrl-debug/lint/1"


def as_text(faults: Sequence[Fault], files: Sequence[str]) -> str:
    """For a terminal: place, fault, reason, repair."""
    if not faults:
        return f"nothing wrong in {', '.join(files)}"
    lines = []
    for fault in faults:
        lines += [f"{fault.file}:{fault.line}: {fault.severity} {fault.id} {fault.name}", f"    {fault.text}"]
        lines += [f"    reason  {fault.reason}", f"    repair  {fault.repair}", ""]
    errors = sum(f.severity == "error" for f in faults)
    more = "" if len(files) == 1 else f" in {len(files)} files"
    lines.append(f"{errors} errors, {len(faults) - errors} warnings{more}; a script without them: rayrl-debug slurm render")
    return "\n".join(lines)


def as_document(faults: Sequence[Fault], files: Sequence[str]) -> str:
    """Schema ``rayrl-debug/lint/1``."""
    body = {"schema": SCHEMA, "files": list(files), "faults": [msgspec.structs.asdict(f) for f in faults]}
    return json.dumps(body, indent=2, ensure_ascii=False)


def as_sarif(faults: Sequence[Fault], files: Sequence[str]) -> str:
    """SARIF 2.1.0 with one run."""
    rules = [
        {
            "id": r.id,
            "name": r.name,
            "shortDescription": {"text": r.name},
            "fullDescription": {"text": r.reason},
            "help": {"text": r.repair},
            "defaultConfiguration": {"level": r.severity},
        }
        for r in RULES
    ]
    index = {r.id: i for i, r in enumerate(RULES)}
    results = [
        {
            "ruleId": f.id,
            "ruleIndex": index[f.id],
            "level": f.severity,
            "message": {"text": f"{f.name}: {f.reason}. Repair: {f.repair}"},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": f.file}, "region": {"startLine": f.line}}}],
        }
        for f in faults
    ]
    run = {
        "tool": {"driver": {"name": "rayrl-debug slurm lint", "version": __version__, "rules": rules}},
        "artifacts": [{"location": {"uri": file}} for file in files],
        "results": results,
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)
