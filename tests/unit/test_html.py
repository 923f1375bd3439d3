"""The page: what it says, that nothing from outside can run or load in it, and how large it gets. A real browser reads it in tests/integration."""

from __future__ import annotations

import base64
import hashlib
import re
import string
from html.parser import HTMLParser
from itertools import pairwise

import msgspec
import pytest
from big_run import HOSTILE, big_run, hostile_run
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import (
    AwaitClass,
    Cause,
    Certainty,
    Evidence,
    Finding,
    Link,
    ProcessSummary,
    Report,
    StackClass,
    State,
    Verdict,
    Who,
    WorldSummary,
)
from ray_rl_debug.model.snapshot import Gap, Snapshot
from ray_rl_debug.render.html import render
from ray_rl_debug.render.html.icicle import WEIGHTS
from ray_rl_debug.render.html.strips import Band, Strip
from ray_rl_debug.render.html.text import clip, count, seconds, size, split_line

VOID = {"meta", "link", "br", "input", "img", "hr"}
ADDRESSES = {"src", "href", "action", "data", "poster", "srcset", "formaction", "xlink:href", "background", "ping", "cite"}
TAGS = set(
    "html head meta title link style body a header p span h1 h2 h3 h4 code button nav main section article div details summary ol ul li dl dt dd b i"
    " em bdi svg g rect path text table thead tbody tr th td footer script time small label input".split()
)


class Page(HTMLParser):
    """Every element, attribute and text of a page; unclosed and crossed elements are errors."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.raw: dict[str, str] = {}
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), (tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            self.raw[self.open[-1]] = self.raw.get(self.open[-1], "") + data
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]

    @property
    def ids(self) -> list[str]:
        return [attrs["id"] or "" for _, attrs in self.elements if "id" in attrs]


def page_of(snapshot: Snapshot) -> Page:
    return Page(render(diagnose(snapshot), snapshot))


def check_harmless(page: Page) -> None:
    """Only our elements, no handlers, no inline styles, no address but places in the page and the icon."""
    assert {tag for tag, _ in page.elements} <= TAGS
    assert len(page.all("script")) == 1
    assert len(page.all("style")) == 1
    for tag, attrs in page.elements:
        assert not any(a.startswith("on") or a == "style" for a in attrs), (tag, attrs)
        for key in ADDRESSES & set(attrs):
            value = attrs[key] or ""
            assert value.startswith("#") or (tag == "link" and value.startswith("data:image/svg+xml,")), (tag, key, value)
    assert len(page.ids) == len(set(page.ids))
    for link in page.all("a"):
        assert (link["href"] or "")[1:] in page.ids, link


def test_the_page_tells_the_story_from_top_to_bottom() -> None:
    page = page_of(big_run(4))
    text = page.text
    told = [
        "HANG likely RewardWorker/1 (gpu-001 pid 20001) is busy: it is in normalise_answer (maths.py:30); 4 processes wait for it",
        "next: rayrl-debug explain RRD101",
        "2026-09-21 14:13:20 UTC",
        "1 node and 1 silent",
        "Who waits for whom",
        "waits for RewardWorker.compute_score, running there",
        "← cause",
        "stack, innermost first normalise_answer rewards/maths.py:30",
        "What to do read this stack first",
        "Evidence",
        "its call runs for 91 s; the longest one of that name took 7.4 s",
        "Victims 4 processes only wait",
        "Where everybody stands",
        "RewardWorker 4 of 4 ranks",
        "Over time calls that still run",
        "GPUs at the capture",
        "Stacks, the fewest first",
        "What was not seen",
        "1 node did not answer: gpu-999",
        "→ ssh gpu-999, then rayrl-debug snapshot --here",
        "Raw facts",
    ]
    position = 0
    for line in told:
        found = text.find(line, position)
        assert found >= 0, f"{line!r} is missing after {text[max(0, position - 80) : position + 200]!r}"
        position = found
    assert "Asyncio tasks 1 process tasks awaits chain, outermost first names AgentLoop (gpu-001 pid 901) 64 Semaphore" in text
    check_harmless(page)


def test_the_policy_allows_our_style_and_script_and_nothing_else() -> None:
    page = page_of(big_run(4))
    policy = next(m["content"] or "" for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["base-uri"] == directives["form-action"] == "'none'"
    assert "unsafe" not in policy
    assert "http" not in policy
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        digest = base64.b64encode(hashlib.sha256(page.raw[tag].encode()).digest()).decode()
        assert directives[directive] == f"'sha256-{digest}'"
    assert not re.search(r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|fetch|XMLHttpRequest|import)\b", page.raw["script"])
    assert not re.search(r"url\(|@import", page.raw["style"])
    # The first thing in the head: a policy binds only what comes after it.
    assert [tag for tag, _ in page.elements].index("meta") < [tag for tag, _ in page.elements].index("style")


@pytest.mark.parametrize("bad", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_text(bad: str) -> None:
    snapshot = hostile_run(bad)
    html = render(diagnose(snapshot), snapshot)
    page = Page(html)
    check_harmless(page)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]", html)
    assert len(html) < 250_000


def test_a_name_is_shown_as_it_is() -> None:
    page = page_of(hostile_run("<b>&amp;</b>"))
    assert "<b>&amp;</b>" in page.text


def test_a_thousand_ranks_fit_a_mail() -> None:
    snapshot = big_run(1000, culprit=617)
    html = render(diagnose(snapshot), snapshot)
    page = Page(html)
    check_harmless(page)
    assert len(html.encode()) < 1_500_000
    cells = [a for a in page.all("a") if "cell" in (a.get("class") or "")]
    assert len(cells) == 1002
    assert [a["title"] for a in cells if "bad" in (a.get("class") or "").split()] == [
        "accused, RewardWorker/617 on gpu-078, pid 20617: in normalise_answer (maths.py:30), phase reward"
    ]
    assert "1 node stands out: gpu-078 616-623" in page.text
    assert len(page.all("tr")) > 1000
    assert "RewardWorker/999" in page.text


def test_the_few_come_first_and_are_wide_enough() -> None:
    snapshot = big_run(1000, culprit=617)
    html = render(diagnose(snapshot), snapshot)
    ice = html[html.index('class="scroll ice"') :]
    blocks = re.findall(r'<div class="(node [^"]*leaf[^"]*)">(.*?)</p></div>', ice, re.DOTALL)
    assert "bad" in blocks[0][0]
    assert "normalise_answer" in blocks[0][1]
    style = Page(html).raw["style"]
    assert re.search(r"\.node\.leaf \{ min-width: 1\drem", style)
    weights = {int(w) for w in re.findall(r'class="node w(\d+)', ice)}
    assert weights <= set(range(1, WEIGHTS + 1))
    assert all(f".w{w}{{flex-grow:{w}}}" in style for w in weights)


def test_without_the_snapshot_the_report_is_enough() -> None:
    page = Page(render(diagnose(big_run(4))))
    check_harmless(page)
    assert "Only the report was given" in page.text
    assert "normalise_answer" in page.text


@pytest.mark.parametrize("state", list(State))
def test_every_state_has_its_page(state: State) -> None:
    report = Report(verdict=Verdict(state=state, summary="all is said", certainty=Certainty.LIKELY), taken_time_s=1e300)
    page = Page(render(report))
    check_harmless(page)
    assert f"is-{state.value}" in (page.all("body")[0]["class"] or "")
    assert state.value.upper() in page.text
    assert "all is said" in page.text
    assert ("likely" in page.text) == (state is not State.UNKNOWN)
    assert "Nothing is missing from this capture." in page.text


def test_a_ring_leads_back_and_the_way_into_it_is_drawn() -> None:
    who = [Who(label=name, node="n1", pid=i + 1) for i, name in enumerate(("driver", "store", "server", "scorer"))]
    way = [(0, 3), (3, 2), (2, 1), (1, 3)]
    chain = tuple(Link(waiter=who[a], target=who[b], why="ray.get", evidence=f"waits for call {b}", certainty=Certainty.PROVEN) for a, b in way)
    finding = Finding(
        id="RRD401",
        name="ring of Ray calls",
        cause=Cause.RAY_GET_CYCLE,
        certainty=Certainty.PROVEN,
        summary="a ring",
        root=True,
        who=tuple(who[1:]),
        chain=chain,
    )
    report = Report(verdict=Verdict(state=State.HANG, summary="x", certainty=Certainty.PROVEN), findings=(finding,))
    html = render(report)
    page = Page(html)
    assert html.count('class="box cause"') == 3
    assert html.count('class="box waiter"') == 1
    assert html.count('class="wire back"') == 1
    assert "back to scorer" in page.text


def test_victims_without_a_known_way_are_drawn_at_once() -> None:
    finding = Finding(
        id="RRD107",
        name="rank died",
        cause=Cause.RANK_DIED,
        certainty=Certainty.POSSIBLE,
        summary="s",
        root=True,
        who=(Who(label="actor/3"),),
        victims=tuple(Who(label=f"actor/{i}", node="n1", pid=i + 1) for i in range(3)),
    )
    html = render(Report(verdict=Verdict(state=State.UNKNOWN, summary="x", certainty=Certainty.POSSIBLE), findings=(finding,)))
    assert ">actor/0-2</text>" in html
    assert ">3 processes only wait</text>" in html
    assert ">actor/3   ← suspect</text>" in html


def test_a_long_chain_is_folded_in_the_middle() -> None:
    people = [Who(label=f"actor_{chr(97 + i % 26)}{i}", node="n1", pid=i + 1) for i in range(60)]
    chain = tuple(Link(waiter=a, target=b, why="ray.get", evidence="", certainty=Certainty.LIKELY) for a, b in pairwise(people))
    finding = Finding(
        id="RRD101", name="straggler", cause=Cause.STRAGGLER, certainty=Certainty.LIKELY, summary="s", root=True, who=(people[-1],), chain=chain
    )
    html = render(Report(verdict=Verdict(state=State.HANG, summary="x", certainty=Certainty.LIKELY), findings=(finding,)))
    assert "… 46 more in between" in html
    assert html.count("<rect") < 40


def test_what_a_companion_saw_before_is_drawn() -> None:
    snapshot = big_run(4)
    history = (Strip(label="trainers", bands=(Band(0.0, 40.0, "rollout"), Band(40.0, 60.0, "update"), Band(60.0, 70.0, 55.0)), note="step 41"),)
    page = Page(render(diagnose(snapshot), snapshot, history=history))
    check_harmless(page)
    assert "before the capture rollout update trainers step 41 −1 min 10 s" in page.text


TEXT = st.text(st.sampled_from(string.printable + "<>&\"'\u202e\x00\x9b\ud800é名" * 3), max_size=30)
MAYBE = st.none() | TEXT
NUMBER = st.none() | st.integers(0, 5)
WHO = st.builds(Who, label=TEXT, node=MAYBE, pid=NUMBER, task=MAYBE, world=MAYBE, rank=NUMBER, thread=MAYBE)
STACK = st.lists(TEXT | st.builds("{} ({}:{})".format, TEXT, TEXT, st.integers(-1, 9)), max_size=4).map(tuple)
REPORTS = st.builds(
    Report,
    tool_version=TEXT,
    taken_time_s=st.none() | st.floats(),
    verdict=st.builds(Verdict, state=st.sampled_from(State), summary=TEXT, certainty=st.sampled_from(Certainty), next=MAYBE),
    findings=st.lists(
        st.builds(
            Finding,
            id=TEXT,
            name=TEXT,
            cause=st.sampled_from(Cause),
            certainty=st.sampled_from(Certainty),
            summary=TEXT,
            root=st.booleans(),
            phase=MAYBE,
            who=st.lists(WHO, max_size=9).map(tuple),
            victims=st.lists(WHO, max_size=4).map(tuple),
            evidence=st.lists(st.builds(Evidence, kind=TEXT, where=TEXT, text=TEXT), max_size=2).map(tuple),
            remedy=st.lists(TEXT, max_size=2).map(tuple),
            chain=st.lists(st.builds(Link, waiter=WHO, target=WHO, why=TEXT, evidence=TEXT, certainty=st.sampled_from(Certainty)), max_size=4).map(
                tuple
            ),
        ),
        max_size=7,
    ).map(tuple),
    gaps=st.lists(st.builds(Gap, id=TEXT, where=TEXT, what=TEXT, reason=TEXT, remedy=MAYBE), max_size=2).map(tuple),
    processes=st.lists(
        st.builds(
            ProcessSummary,
            who=WHO,
            kind=TEXT,
            phase=MAYBE,
            doing=MAYBE,
            stack=STACK,
            cpu_percent=st.none() | st.floats(),
            moving=st.none() | st.booleans(),
        ),
        max_size=6,
    ).map(tuple),
    worlds=st.lists(st.builds(WorldSummary, name=TEXT, size=NUMBER, ranks=st.just((0, 2)), missing=st.just((1,))), max_size=2).map(tuple),
    classes=st.lists(st.builds(StackClass, frames=STACK, members=st.lists(TEXT, max_size=3).map(tuple), kind=TEXT), max_size=5).map(tuple),
    awaits=st.lists(st.builds(AwaitClass, process=TEXT, count=st.integers(0, 9), chain=STACK, awaited=MAYBE), max_size=2).map(tuple),
    links=st.just(()),
    timing=st.dictionaries(TEXT, st.floats(0, 1e6), max_size=2),
)


@settings(max_examples=60, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate), suppress_health_check=list(HealthCheck))
@given(REPORTS)
def test_no_report_breaks_the_page(report: Report) -> None:
    html = render(report)
    check_harmless(Page(html))
    html.encode()


def test_texts_are_cut_in_the_middle() -> None:
    assert clip("abcdefghij", 10) == "abcdefghij"
    assert clip("abcdefghijk", 10) == "abcdef…ijk"


def test_numbers_read_well() -> None:
    assert [seconds(v) for v in (0.0, 0.018, 0.99999, 59.9, 61, 3725, 200_000)] == [
        "0 ms",
        "18 ms",
        "1.0 s",
        "59.9 s",
        "1 min 01 s",
        "1 h 02 min",
        "2 d 7 h",
    ]
    assert [size(v) for v in (None, 10, 2048, 3 << 30)] == ["–", "10 B", "2.0 KiB", "3.0 GiB"]
    assert [count(1, "process"), count(1200, "process"), count(2, "node")] == ["1 process", "1,200 processes", "2 nodes"]


def test_a_line_of_a_stack_is_taken_apart() -> None:
    assert split_line("Loop.run.<locals>.f (a b/c.py:12)") == ("Loop.run.<locals>.f", "a b/c.py", 12)
    assert split_line("f (c.py)") == ("f", "c.py", None)
    assert split_line("recv ()") == ("recv", "", None)


def test_a_damaged_snapshot_still_makes_a_page() -> None:
    """Indexes that point nowhere come from files cut short or written by others."""
    snapshot = big_run(4)
    report = diagnose(snapshot)
    broken = replace(snapshot, nodes=tuple(replace(n, stacks=(), frames=()) for n in snapshot.nodes), ray=None)
    check_harmless(Page(render(report, broken)))
    assert msgspec.json.decode(msgspec.json.encode(broken), type=Snapshot) == broken


@pytest.mark.parametrize(
    ("kind", "said"), [("running", "1× runs now"), ("ready", "1× waits for its turn on the loop"), ("event", "1× waits for Event")]
)
def test_what_a_coroutine_does_is_told_as_in_the_terminal(kind: str, said: str) -> None:
    who = Who(label="agent", node="n1", pid=1)
    waits = AwaitClass(node="n1", pid=1, process="agent", count=1, chain=("step",), awaited="Event", kind=kind)
    finding = Finding(id="RRD201", name="coroutines stuck", cause=Cause.ASYNCIO_STUCK, certainty=Certainty.LIKELY, summary="s", root=True, who=(who,))
    report = Report(verdict=Verdict(state=State.HANG, summary="x", certainty=Certainty.LIKELY), findings=(finding,), awaits=(waits,))
    assert said in " ".join(Page(render(report)).text.split())


def test_of_more_ranks_than_are_drawn_the_accused_one_is() -> None:
    ranks = 6_000
    everybody = [Who(label=f"actor/{rank}", node=f"n{rank // 8}", pid=1_000 + rank, world="actor", rank=rank) for rank in range(ranks)]
    culprit = everybody[-1]
    finding = Finding(id="RRD101", name="straggler", cause=Cause.STRAGGLER, certainty=Certainty.LIKELY, summary="s", root=True, who=(culprit,))
    report = Report(
        verdict=Verdict(state=State.HANG, summary="x", certainty=Certainty.LIKELY),
        findings=(finding,),
        processes=tuple(ProcessSummary(who=who, kind="ray-worker", doing="waits in all_reduce") for who in everybody),
        worlds=(WorldSummary(name="actor", size=ranks, ranks=tuple(range(ranks))),),
    )
    text = render(report)
    assert len(text) < 5_000_000
    assert f"<tr id=p{ranks - 1} " in text
    assert f'<a href="#p{ranks - 1}" class="cell' in text
    assert "1,904 more ranks not drawn" in text
    assert "1,000 more rows in report.json" in text
