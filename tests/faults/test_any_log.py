"""Any bytes may come as a log: nothing raises, the time grows with the size only, and the memory is bounded."""

from __future__ import annotations

import re
import time
import tracemalloc

import pytest
from counted_steps import steps
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ray_rl_debug.logs.book import BookReader
from ray_rl_debug.logs.heads import read_head
from ray_rl_debug.logs.json_lines import plain_line
from ray_rl_debug.logs.search import Searcher
from ray_rl_debug.logs.shapes import DIGITS, MIN_LETTERS
from ray_rl_debug.logs.stamps import find_stamp
from ray_rl_debug.logs.steps import read_step
from ray_rl_debug.logs.words import STEMS, goes_on, judge
from ray_rl_debug.model.codec import encode
from ray_rl_debug.model.snapshot import LogBook
from ray_rl_debug.signatures.literals import Literals
from ray_rl_debug.signatures.match import Matcher
from ray_rl_debug.story.tell import tell

PIECES = (
    "Traceback (most recent call last):",
    '  File "/w/a.py", line 3, in f',
    "    x()",
    "ValueError: x",
    "During handling of the above exception, another exception occurred:",
    "ray.exceptions.RayTaskError(KeyError): ray::W.f() (pid=3, ip=10.0.0.3)",
    "(WorkerDict pid=3, ip=10.0.0.3) ",
    "[rank3]: ",
    "3: ",
    "[2026-11-21 10:00:00,123 E 9 9] ",
    "99-99 99:99:99 ",
    "E9999 99:99:99.9 ",
    "2026-13-45T25:61:61Z ",
    "\x1b[31m",
    "[36m",
    "\r",
    "\n",
    "\\n",
    '{"msg": "Traceback (most recent call last):\\n',
    '"}',
    "step: 3",
    "12/50 [00:10<",
    "CUDA error: an illegal memory access was encountered",
    "n1:7:9 [0] NCCL WARN Cuda failure 1",
    "exit code 1",
    "retrying",
    "\x00",
    "é",
    "(" * 50,
    "[" * 50,
)
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=12)), max_size=60).map("".join)


def book(data: bytes, cuts: list[int] | None = None) -> LogBook:
    reader = BookReader("any/rank1.log", modified_time_s=1.79e9)
    begin = 0
    for cut in [*sorted(c % (len(data) + 1) for c in cuts or []), len(data)]:
        if cut > begin:
            reader.feed(data[begin:cut])
            begin = cut
    return reader.end()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS, st.lists(st.integers(0, 4000), max_size=3))
def test_pieces_of_logs_in_any_order(text: str, cuts: list[int]) -> None:
    """Pieces of tracebacks, marks and stamps come in any order.
    There is a story or none, never an error."""
    data = text.encode("utf-8", "surrogatepass")
    found = book(data, cuts)
    assert found.bytes == len(data)
    story = tell([found])
    assert story is not None and encode(story)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=3000))
def test_any_bytes(data: bytes) -> None:
    """The bytes are no text.
    There is a story or none, never an error."""
    encode(book(data))


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_each_part_takes_any_line(line: str) -> None:
    """A line holds anything.
    Each reader of a part of it gives an answer."""
    head = read_head(line, near_s=1.79e9)
    judge(head.text, head.level)
    goes_on(line, behind=True)
    read_step(line)
    find_stamp(line, near_s=1e300)
    plain_line(line)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(min_size=4, max_size=9), min_size=1, max_size=20), st.binary(max_size=400), st.data())
def test_the_search_by_words_misses_nothing(texts: list[bytes], block: bytes, data: st.DataObject) -> None:
    """Random texts stand in random bytes.
    The quick search finds each line that a plain search finds, also when its shape was seen before, and numbers them."""
    block += data.draw(st.sampled_from(texts)) + b"\n" + block
    assert all(text in Literals(texts).possible(block) for text in texts if text in block)
    texts = [t for t in texts if b"\n" not in t and len(t.translate(None, DIGITS)) >= MIN_LETTERS]
    searcher = Searcher(texts, library=False)
    for _ in range(2):
        found, ended = searcher.search(block)
        assert [(number, block[a:b]) for number, a, b in found] == [
            (number, line) for number, line in enumerate(block.split(b"\n")) if any(t in line for t in texts)
        ]
        assert ended == block.count(b"\n")


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(["E19999", "E1", "ERR01", " ", ": x", "\n", "7", "Engine", "mlx5_core", "mlx_core", "fatal error"]), max_size=30).map(
        "".join
    )
)
def test_texts_with_digits_are_found_whatever_was_seen_before(text: str) -> None:
    """Lines differ in their digits only, and some of them hold a text with digits.
    Each of these is found."""
    texts = [b"E19999", b"ERR01", b"mlx5_core", b"error"]
    searcher = Searcher(texts, library=False)
    searcher.search(b"E: x\nmlx_core\nERR\nmlx4_core: x\n")
    block = text.encode()
    found = {block[a:b] for _, a, b in searcher.search(block)[0]}
    alone = re.compile(rb"(?<![A-Za-z0-9])(?:E19999|ERR01)(?![A-Za-z0-9])|mlx5_core|error")
    assert found >= {line for line in block.split(b"\n") if alone.search(line)}
    assert all(any(t in line for t in texts) for line in found)


def _seconds(data: bytes) -> float:
    best = float("inf")
    for _ in range(2):
        started = time.process_time()
        book(data)
        best = min(best, time.process_time() - started)
    return best


@pytest.mark.parametrize(
    "piece",
    [
        "Traceback (most recent call last):\n",
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n',
        "ValueError: x\n",
        "(a pid=1) " * 20 + "ERROR x\n",
        "[rank3]: " * 40 + "\n",
        "error " * 3000 + "\n",
        "a" * 100_000,
        "\r10%|# error",
        "During handling of the above exception, another exception occurred:\n",
        '{"msg":"Traceback (most recent call last):\\\\n  File \\"a\\", line 1, in f\\\\nE: x"}\n',
    ],
)
def test_time_grows_with_the_size_only(piece: str) -> None:
    """A hostile line is repeated.
    Four times the bytes take at most about four times as long."""
    unit = (piece * (60_000 // len(piece) + 1)).encode()
    small, large = _seconds(unit), _seconds(unit * 4)
    assert large < 4 * 2.5 * small + 0.5


def _letters(number: int) -> str:
    """A word for a number: lines that differ in their digits only are read once."""
    return "".join(chr(97 + number // 26**k % 26) for k in range(4))


HOSTILE_LINES = {
    "all lines differ": lambda n: f"{_letters(n)} is said of {_letters(n * 7)} and of {_letters(n * 13)}",
    "all fail": lambda n: f"ERROR {_letters(n)} failed",
    "all begin a traceback": lambda n: f"{_letters(n)} Traceback (most recent call last):",
    "tracebacks without an end": lambda n: f'  File "{_letters(n)}.py", line 3, in f' if n % 50 else "Traceback (most recent call last):",
    "chains": lambda n: ("Traceback (most recent call last):", f"{_letters(n)}.Error: x", "", "During handling of the above exception, another one:")[
        n % 4
    ],
    "codes": lambda n: f"E {_letters(n)} EE ERR: E1",
    "steps of many": lambda n: f"({_letters(n)} pid={n}) step {n}",
    "bars": lambda n: f"\r{n}%|{_letters(n)}| {n}/9 [00:01<00:02]" * 3,
}


@pytest.mark.integration
@pytest.mark.parametrize("name", sorted(HOSTILE_LINES))
def test_each_line_is_looked_at_a_few_times_only(name: str) -> None:
    """A log of hostile lines is twice as large, and comes in blocks.
    It takes at most about twice as many steps."""

    def work(size: int) -> None:
        matcher = Matcher()  # what earlier logs have taught would spare steps
        searcher = Searcher([*(s.encode() for s in STEMS), *matcher.literals], library=False)
        reader = BookReader("any/rank1.log", modified_time_s=1.79e9, use=(matcher, searcher))
        lines: list[str] = []
        while size > 0:
            lines.append(HOSTILE_LINES[name](len(lines)) + "\n")
            size -= len(lines[-1])
        data = "".join(lines).encode()
        for begin in range(0, len(data), 20_000):
            reader.feed(data[begin : begin + 20_000])
        reader.end()

    work(1)
    # Smaller ones are less than what is looked at around a failure, and than what is kept of the first ones.
    none, some, many = (steps(lambda size=size: work(size)) for size in (1, 160_000, 320_000))  # type: ignore[misc]
    assert many - none < 2.4 * (some - none) + 4_000


def test_memory_is_bounded() -> None:
    """Each line of a log holds a new error.
    It costs memory for some blocks only, and what is left out is counted."""
    reader = BookReader("rank1.log", modified_time_s=1.79e9)
    tracemalloc.start()
    for i in range(3):
        words = "".join(f"ERROR {chr(97 + j % 26)}{chr(97 + j // 26 % 26)}{chr(97 + i)} failed to {'x' * 80} {j}\n" for j in range(1_500))
        reader.feed(words.encode())
    found = reader.end()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30 << 20
    assert len(found.events) <= 240 and found.left_out > 0


def test_blocks_may_end_anywhere() -> None:
    """The same log comes in blocks of other sizes, which end in the middle of tracebacks, and of what follows them.
    The same is told."""
    calm = "".join(f"(WorkerDict pid={40 + i % 4}) step {i} of {i % 7}\n" for i in range(4_000))
    failed = "".join(
        f"(WorkerDict pid=41) {line}\n" for line in ("Traceback (most recent call last):", '  File "/w/a.py", line 3, in f', "KeyError: {}")
    )
    text = "".join(
        f"{calm}{failed.format(word)}{after}" for word, after in (("'a'", "(WorkerDict pid=41) INFO retrying\n"), ("'b'", ""), ("'c'", ""))
    )
    data = (text + calm).encode()
    whole = book(data)
    assert [(e.text, e.file_line, e.handled) for e in whole.events] == [
        ("KeyError: 'a'", 4_001, "retrying"),
        ("KeyError: 'b'", 8_005, None),
        ("KeyError: 'c'", 12_008, None),
    ]
    at = [data.find(b"KeyError", a) for a in (0, 200_000, 300_000)]
    for cuts in (at, [a + 30 for a in at], [a - 40 for a in at], range(0, len(data), 70_001)):
        reader = BookReader("any/rank1.log", modified_time_s=1.79e9)
        begin = 0
        for cut in [*cuts, len(data)]:
            if cut > begin:
                reader.feed(data[begin:cut])
                begin = cut
        again = reader.end()
        assert [(e.text, e.file_line, e.handled) for e in again.events] == [(e.text, e.file_line, e.handled) for e in whole.events]
        assert (again.lines, again.steps, again.bytes) == (whole.lines, whole.steps, whole.bytes)
