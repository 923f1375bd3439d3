"""Store a snapshot as a case: ``python tests/cases/store.py hang/snapshot.json.gz RRD101 hang --replace /home/me/venv=/opt/env``.

What tells of the machine (host names, scratch folders, the folders given by ``--replace``) is rewritten to neutral names; the facts stay.
Then add the line for ``table.txt`` that is printed, and read the report once as a tired person would.
"""

from __future__ import annotations

import argparse
import gzip
import re
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ray_rl_debug import signatures
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.codec import encode
from ray_rl_debug.model.report import Report
from ray_rl_debug.model.snapshot import Node, Snapshot
from ray_rl_debug.rules import known_error

HERE = Path(__file__).parent
_TAKEN = frozenset({"imported"})
"""Names that the tool gave itself."""
_RAY = re.compile(r"session_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d+_\d+")
_SCRATCH = re.compile(r"/tmp/[\w.-]*?(?=/ray/|/|\")")
_CARD = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PYENV = re.compile(r"/[\w./-]*/versions/(\d+\.\d+)[\d.]*")


def neutral(snapshot: Snapshot, replacements: dict[str, str]) -> Snapshot:
    """The same facts under names that belong to no machine."""
    text = encode(snapshot).decode()
    names = dict.fromkeys([*(n.name for n in snapshot.nodes), *(n.host for n in (snapshot.ray.nodes if snapshot.ray else ()))])
    numbered = {name: f"node{number}" for number, name in enumerate(names, 1) if name not in _TAKEN}
    for name in sorted(numbered, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", numbered[name], text)
    for old, new in sorted(replacements.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(old, new)
    text = _RAY.sub("session_1", text)
    text = _SCRATCH.sub("/tmp/run", text)
    cards = {card: f"GPU-{number}" for number, card in enumerate(dict.fromkeys(_CARD.findall(text)))}
    text = _CARD.sub(lambda found: cards[found[0]], text)
    text = _PYENV.sub(r"/usr/lib/python\1", text)
    decoded = msgspec.json.decode(text, type=Snapshot)
    return replace(decoded, nodes=tuple(_plain_node(n) for n in decoded.nodes))


def _plain_node(node: Node) -> Node:
    processes = tuple(replace(p, cgroup=p.cgroup and "/job") for p in node.processes)
    versions = {name: version for name, version in node.versions.items() if name != "kernel"}
    return replace(node, boot_id=node.boot_id and "boot", versions=versions, processes=processes)


def file_name(kind: str, scenario: str, *, more: bool) -> str:
    """``hang`` for the first of a rule, ``hang-SCENARIO`` for the others."""
    return f"{kind}-{scenario}" if more else kind


def gives(report: Report, rule: str, *, roots: bool) -> bool:
    """Is there a finding of `rule`? Those of the rule about logs carry the id of the line's signature."""
    ids = {f.id for f in report.findings if f.root or not roots}
    return rule in ids or (rule == known_error.ID and any(signatures.find(found) is not None for found in ids))


def row(report: Report) -> tuple[str, str, str]:
    """State, the accused of the first root finding, its cause; dashes where nobody is accused."""
    first = next((f for f in report.findings if f.root), None)
    if first is None:
        return report.verdict.state.value, "-", "-"
    names = dict.fromkeys(w.label.removesuffix(f" (pid {w.pid})").replace(" ", "_") for w in first.who)
    return report.verdict.state.value, ",".join(names) or "-", first.cause.value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("snapshot", type=Path)
    parser.add_argument("rule")
    parser.add_argument("kind", choices=("hang", "quiet"))
    parser.add_argument("--scenario", default="-", help="which program hung; the second and later of a rule get a file with its name")
    parser.add_argument("--replace", action="append", default=[], metavar="OLD=NEW")
    parser.add_argument("--more", action="store_true", help="another case beside the first one of the rule")
    given = parser.parse_args()
    found = load((given.snapshot,)).snapshot
    assert found is not None
    snapshot = neutral(found, dict(pair.split("=", 1) for pair in given.replace))
    before, after = diagnose(found), diagnose(snapshot)
    ids = [f.id for f in after.findings]
    if [f.id for f in before.findings] != ids:
        parser.error(f"new names changed the report from {[f.id for f in before.findings]} to {ids}: are the folders of --replace too short?")
    if gives(after, given.rule, roots=given.kind == "hang") != (given.kind == "hang"):
        wanted = "must be the cause at a root" if given.kind == "hang" else "must not be found"
        parser.error(f"not stored: {given.rule} {wanted} in a case of kind {given.kind}; the report finds {', '.join(ids) or 'nothing'}")
    folder = HERE / given.rule
    folder.mkdir(exist_ok=True)
    # No time in the header: the same facts give the same file.
    (folder / f"{file_name(given.kind, given.scenario, more=given.more)}.json.gz").write_bytes(gzip.compress(encode(snapshot), 9, mtime=0))
    state, who, cause = row(after)
    print(f"{given.rule}  {given.kind:<5}  {given.scenario:<34}  {state:<8}  {who:<52}  {cause}")


if __name__ == "__main__":
    main()
