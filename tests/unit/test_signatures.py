import re
import time
from pathlib import Path

import pytest

from ray_rl_debug import signatures
from ray_rl_debug.signatures import EFFECTS, LAYERS, Signature
from ray_rl_debug.signatures.match import MAX_LINE_CHARS, Matcher

ALL = signatures.load()
MATCHER = Matcher()
HEALTHY = (Path(__file__).parents[1] / "data" / "logs" / "healthy.log").read_text().splitlines()


def test_enough_of_every_layer():
    assert len(ALL) >= 80
    assert {s.layer for s in ALL} == set(LAYERS)
    assert {s.effect for s in ALL} == set(EFFECTS)


def test_ids_and_slugs_are_unique():
    assert len({s.id for s in ALL}) == len(ALL)
    assert len({(s.layer, s.slug) for s in ALL}) == len(ALL)
    assert all(re.fullmatch(r"RRD6\d\d|RRD6[1-9]\d\d", s.id) for s in ALL)


def test_layer_is_the_folder():
    root = Path(signatures.__file__).parent
    assert all((root / s.layer / f"{s.slug}.yaml").is_file() for s in ALL)


def test_ids_named_in_remedies_exist_and_mean_ray_errors():
    for s in ALL:
        for named in re.findall(r"RRD6\d+", s.cause + s.remedy):
            found = signatures.find(named)
            assert found is not None and found.layer == s.layer, s.id


@pytest.mark.parametrize("signature", ALL, ids=lambda s: s.id)
def test_lines_of_a_signature(signature: Signature):
    alone = Matcher([signature])
    assert signature.matches and signature.not_
    for line in signature.matches:
        assert alone.match_line(line) == signature, line
        assert alone.match_line(f"\x1b[36m(TaskRunner pid=17, ip=10.0.0.3)\x1b[0m {line}") == signature, line
    for line in signature.not_:
        assert alone.match_line(line) is None, line


@pytest.mark.parametrize("signature", ALL, ids=lambda s: s.id)
def test_a_line_is_known_by_its_own_signature(signature: Signature):
    for line in signature.matches:
        assert MATCHER.match_line(line) == signature, line


@pytest.mark.parametrize("signature", ALL, ids=lambda s: s.id)
def test_near_misses_belong_to_no_signature_by_accident(signature: Signature):
    for line in signature.not_:
        found = MATCHER.match_line(line)
        # A near miss may be another error's own line, such as a caller's for a worker's.
        assert found is None or any(line in match for match in found.matches), line


def test_healthy_text_matches_nothing():
    assert [(line, found.id) for line in HEALTHY if (found := MATCHER.match_line(line)) is not None] == []


def test_every_literal_is_needed_and_plain():
    for s in ALL:
        for literal in s.literals:
            assert len(literal) >= 4
            assert any(literal in line for line in s.matches) or len(s.literals) > 1, (s.id, literal)


def test_most_severe_signature_wins():
    line = "ray.exceptions.RayTaskError: The actor died unexpectedly before finishing this task. CUDA error: an illegal memory access was encountered"
    found = MATCHER.match_line(line)
    assert found is not None and found.slug == "illegal-memory-access"


def test_progress_bar_with_carriage_returns():
    block = b"10%|#\r20%|##\rRuntimeError: Pin memory thread exited unexpectedly\r30%\n"
    (hit,) = MATCHER.match_block(block)
    assert (hit.line, hit.text) == (0, "RuntimeError: Pin memory thread exited unexpectedly")


def test_line_numbers_count_from_the_start_of_the_block():
    hits = list(MATCHER.match_block(b"ok\n\nKeyError: 'responses'\nok\nreceived 0 items of ancdata\n"))
    assert [(h.line, h.signature.slug) for h in hits] == [(2, "batch-without-responses"), (4, "too-many-open-files")]


def test_a_line_of_megabytes_is_cut_around_the_text():
    block = b"x" * 3_000_000 + b" KeyError: 'responses' " + b"y" * 3_000_000
    (hit,) = MATCHER.match_block(block)
    assert hit.signature.slug == "batch-without-responses" and len(hit.text) <= MAX_LINE_CHARS


def _seconds(block: bytes) -> float:
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        list(MATCHER.match_block(block))
        best = min(best, time.process_time() - started)
    return best


def test_searching_grows_with_the_size_only():
    text = ("\n".join(HEALTHY) + "\n").encode()
    small, large = text * (400_000 // len(text)), text * (3_200_000 // len(text))
    assert _seconds(large) < 8 * 3 * _seconds(small)


def test_no_pattern_explodes_on_repeated_prefixes():
    for s in ALL:
        pattern = re.compile(s.pattern)
        for line in (*s.matches, *s.literals):
            for part in (line, line[: len(line) // 2], line[:8]):
                filled = (part * (MAX_LINE_CHARS // max(1, len(part)) + 1))[:MAX_LINE_CHARS]
                started = time.process_time()
                pattern.search(filled)
                assert time.process_time() - started < 0.5, (s.id, part)


@pytest.mark.parametrize(
    ("line", "slug"),
    [
        ("torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered", "ecc-uncorrectable"),
        ("CUDA error: no kernel image is available for execution on the device (csrc/ops.cu:74)", "no-kernel-image"),
        ("n1:9:9 [0] ras/client_support.cc:160 NCCL WARN Call to bind failed: Address already in use", "address-in-use"),
        ("torch._inductor.exc.InductorError: RuntimeError: Failed to find C compiler. Please specify", "toolchain-missing"),
        ("ModuleNotFoundError: No module named 'flash_attn_3'", "flash-attn-missing"),
        ("RuntimeError: DataLoader worker (pid 8123) is killed by signal: Bus error.", "loader-worker-killed"),
        ("Process group watchdog thread terminated with exception: NCCL error: remote process exited or there was a network error", "remote-error"),
    ],
)
def test_of_two_that_match_one_line_the_more_exact_one_tells_it(line: str, slug: str):
    found = MATCHER.match_line(line)
    assert found is not None and found.slug == slug
