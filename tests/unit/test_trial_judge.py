"""What the judge of ``rollout try`` says of facts written by hand."""

from __future__ import annotations

import msgspec
import pytest

from ray_rl_debug.model.health import Status
from ray_rl_debug.model.trial import Blocked, Episode, Error, Facts, Figures, Gate, Held, LoopTime, Place, Stage, Stood
from ray_rl_debug.render.trial import render
from ray_rl_debug.trial.judge import CHECKS, judge
from ray_rl_debug.trial.judge.figures import knee, quantile
from ray_rl_debug.trial.judge.gate import capacity, least_offpolicyness, limits_of

STAGE = Stage(number=0, name="batch", concurrency=4, episodes=4, took_s=1.0)


def facts(**more: object) -> Facts:
    episodes = tuple(Episode(number=i, stage=0, group=0, began_s=0.0, took_s=0.5, reward=1.0) for i in range(4))
    return msgspec.structs.replace(Facts(target="agent:Agent", contract="areal-agent", stages=(STAGE,), episodes=episodes, is_stand_in=True), **more)


def failing(given: Facts) -> dict[str, str]:
    return {r.check: r.measured for r in judge(given).results if r.status is Status.FAIL}


def test_nothing_is_wrong() -> None:
    assert failing(facts()) == {}
    assert judge(facts()).state is Status.OK


def test_nothing_measured_is_not_health() -> None:
    assert judge(Facts(target="agent:Agent")).state is Status.UNKNOWN
    assert judge(facts(episodes=())).state is Status.UNKNOWN


def test_a_wait_for_a_core_accuses_nobody() -> None:
    one = Blocked(stage=0, since_s=0.0, for_s=3.0, stack=("tokenize (/home/me/agent.py:4)",), cpu_s=0.3, queued_s=2.5)
    assert failing(facts(blocked=(one,))) == {}
    assert "had no core" in next(r.measured for r in judge(facts(blocked=(one,))).results if r.check == "try.loop")


def test_the_first_import_accuses_nobody() -> None:
    stack = ("exec_module (<frozen importlib._bootstrap_external>:940)", "Agent.run (/home/me/agent.py:4)")
    assert failing(facts(blocked=(Blocked(stage=0, since_s=0.0, for_s=3.0, stack=stack),))) == {}


def test_a_block_by_a_library_is_told_by_the_own_line() -> None:
    stack = ("read (/usr/lib/python3.11/socket.py:9)", "post (/x/site-packages/requests/api.py:3)", "Agent.tool (/home/me/agent.py:4)")
    said = failing(facts(blocked=(Blocked(stage=0, since_s=0.0, for_s=3.0, stack=stack, cpu_s=2.9),)))
    assert said["try.loop"].startswith("the event loop was blocked once, for 3.0 s at Agent.tool (/home/me/agent.py:4), in read (")
    assert "it computed" in said["try.loop"]


def loop(waited_s: float = 0.0, computed_s: float = 0.0, stack: tuple[str, ...] = ("Agent.ask (/home/me/agent.py:4)",), **more: float) -> LoopTime:
    times = {"looked_s": 10.0, "ran_s": computed_s, **more}
    return LoopTime(stage=0, places=(Stood(stack=stack, waited_s=waited_s, computed_s=computed_s),), **times)  # type: ignore[arg-type]


def test_many_short_waits_add_up() -> None:
    inner = ("recv (/usr/lib/python3.11/socket.py:9)", "Agent.ask (/home/me/agent.py:4)")
    said = failing(facts(loops=(loop(6.0, stack=inner),)))
    assert said["try.loop"].startswith("the event loop stood still 60% of 10.0 s at Agent.ask (/home/me/agent.py:4), in many short waits")
    assert failing(facts(loops=(loop(2.0),))) == {}, "a fifth of the time is left to the others"
    assert failing(facts(loops=(loop(6.0, stack=("recv (/x/site-packages/httpcore/sync.py:9)",)),))) == {}, "no line of the agent"
    alone = msgspec.structs.replace(STAGE, concurrency=1)
    assert failing(facts(stages=(alone,), loops=(loop(6.0),))) == {}, "nobody else waits"
    long = Blocked(stage=0, since_s=0.0, for_s=3.0, stack=("Agent.ask (/home/me/agent.py:4)",))
    told = [r for r in judge(facts(blocked=(long,), loops=(loop(6.0),))).results if r.check == "try.loop"]
    assert len(told) == 1, "a line is told once"


@pytest.mark.parametrize(
    ("time", "named", "cure"),
    [
        (loop(computed_s=9.0), "100% of the loop's at Agent.ask (/home/me/agent.py:4)", "other processes"),
        (loop(ran_s=1.0), "fill one core", "threads share one interpreter"),
        (loop(computed_s=1.0, ran_s=8.0), "fill one core", "make once what all episodes can share"),
    ],
)
def test_a_full_core_is_told_with_the_line_that_fills_it(time: LoopTime, named: str, cure: str) -> None:
    stage = msgspec.structs.replace(STAGE, took_s=10.0, cpu_s=9.0)
    told = next(r for r in judge(facts(stages=(stage,), loops=(time,))).results if r.check == "try.scale")
    assert (told.status, told.measured.endswith(named)) == (Status.WARN, True), told.measured
    assert cure in (told.remedy or "")


def test_a_loop_that_had_no_core_is_full_too() -> None:
    stage = msgspec.structs.replace(STAGE, took_s=10.0, cpu_s=5.0)
    for queued_s, status in ((4.5, Status.WARN), (0.0, Status.OK)):
        told = next(r for r in judge(facts(stages=(stage,), loops=(loop(computed_s=5.0, queued_s=queued_s),))).results if r.check == "try.scale")
        assert told.status is status


def test_a_failure_that_was_asked_for_needs_no_company() -> None:
    asked = Error(type="InternalServerError", text="500: a failure that was asked for", frames=("Agent.run (/home/me/agent.py:4)",))
    episodes = tuple(Episode(number=i, stage=0, group=0, began_s=0.0, took_s=0.5, error=asked if i == 3 else None) for i in range(4))
    told = next(r for r in judge(facts(episodes=episodes)).results if r.check == "try.errors")
    assert "(as --failures asked)" in told.measured
    assert told.remedy == "catch it in the agent and return a reward"


def test_what_starts_once_blocks_nobody() -> None:
    stages = (msgspec.structs.replace(STAGE, concurrency=1), msgspec.structs.replace(STAGE, number=1, concurrency=8))
    many = tuple(Episode(number=i, stage=min(i, 1), group=0, began_s=0.0, took_s=0.5, reward=1.0) for i in range(9))
    one = Blocked(stage=0, since_s=0.0, for_s=3.0, stack=("Agent.run (/home/me/agent.py:4)",))
    given = facts(stages=stages, episodes=many, blocked=(one,))
    assert failing(given) == {}
    assert "the longest callback took 3.0 s" in next(r.measured for r in judge(given).results if r.check == "try.loop")
    for blocked in ((msgspec.structs.replace(one, stage=1),), (one, one), (msgspec.structs.replace(one, is_over=False),)):
        assert list(failing(msgspec.structs.replace(given, blocked=blocked))) == ["try.loop"]
    assert list(failing(msgspec.structs.replace(given, episodes=many[:4]))) == ["try.loop"], "few episodes came after it"


def test_a_pool_that_is_starting_is_no_limit() -> None:
    waits = Place(where="Agent.run (/a.py:3)", kind="executor", what="thread future pending", count=30)
    works = Place(where="Agent.run (/a.py:4)", kind="socket", count=10)
    first = msgspec.structs.replace(STAGE, concurrency=8, looks=3, places=(waits, works))
    after = msgspec.structs.replace(first, number=1, places=(msgspec.structs.replace(waits, count=5), works))
    smaller = msgspec.structs.replace(after, concurrency=4)
    assert failing(facts(stages=(first, after))) == {}
    assert list(failing(facts(stages=(first, msgspec.structs.replace(first, number=1))))) == ["try.limit"]
    assert list(failing(facts(stages=(first, smaller)))) == ["try.limit"], "fewer at once tell nothing"
    assert list(failing(facts(stages=(first,)))) == ["try.limit"]


def test_a_limit_needs_most_episodes_and_more_than_one_look() -> None:
    waits = Place(where="Agent.run (/a.py:3)", kind="semaphore", what="Semaphore value=0", count=30, lets_in=2)
    works = Place(where="Agent.run (/a.py:4)", kind="socket", count=10)
    stage = msgspec.structs.replace(STAGE, concurrency=40, looks=2, places=(waits, works))
    said = failing(facts(stages=(stage,)))
    assert said["try.limit"] == "at concurrency 40, 75% of the unfinished episodes wait for a semaphore that lets 2 in at Agent.run (/a.py:3)"
    assert failing(facts(stages=(msgspec.structs.replace(stage, looks=1),))) == {}
    few = msgspec.structs.replace(waits, count=10)
    assert failing(facts(stages=(msgspec.structs.replace(stage, places=(few, works)),))) == {}


@pytest.mark.parametrize("state", ["finished", "running"])
def test_a_thread_that_works_or_is_done_is_no_limit(state: str) -> None:
    place = Place(where="Agent.run (/a.py:3)", kind="executor", what=f"thread future {state}", count=30)
    assert failing(facts(stages=(msgspec.structs.replace(STAGE, looks=3, places=(place,)),))) == {}
    waiting = msgspec.structs.replace(place, what="thread future pending")
    assert "a thread of an executor" in failing(facts(stages=(msgspec.structs.replace(STAGE, looks=3, places=(waiting,)),)))["try.limit"]


def rounds(**counts: tuple[int, ...]) -> Facts:
    many = len(next(iter(counts.values())))
    held = [Held(**{k: v[i] for k, v in counts.items()}) for i in range(many)]
    stages = tuple(msgspec.structs.replace(STAGE, number=i, episodes=16, held=h) for i, h in enumerate(held))
    return facts(stages=stages)


@pytest.mark.parametrize("counts", [(4, 20, 36), (100, 116, 132)])
def test_what_grows_in_each_round_is_a_leak(counts: tuple[int, ...]) -> None:
    assert "1 per episode" not in failing(rounds(threads=counts))  # the check's name is the key
    assert failing(rounds(threads=counts))["try.leak"].startswith(f"threads after 3 equal rounds: {counts[0]} → {counts[1]} → {counts[2]}, 1 per")


@pytest.mark.parametrize("counts", [(4, 20, 20), (4, 20, 19), (4, 5, 6), (9, 9, 9)])
def test_what_stops_growing_is_a_pool(counts: tuple[int, ...]) -> None:
    assert failing(rounds(connections=counts)) == {}


def test_two_rounds_tell_no_leak() -> None:
    assert failing(rounds(threads=(4, 20))) == {}


def test_connections_explain_their_descriptors() -> None:
    assert failing(rounds(connections=(4, 20, 36), descriptors=(11, 27, 43))).keys() == {"try.leak"}
    leaks = [r for r in judge(rounds(connections=(4, 20, 36), descriptors=(11, 27, 43))).results if r.check == "try.leak"]
    assert len(leaks) == 1


def test_memory_that_grows_is_only_a_warning() -> None:
    found = judge(rounds(rss_bytes=(100 << 20, 120 << 20, 140 << 20)))
    assert [r.status for r in found.results if r.check == "try.memory"] == [Status.WARN]
    settled = judge(rounds(rss_bytes=(100 << 20, 160 << 20, 161 << 20)))
    assert [r.status for r in settled.results if r.check == "try.memory"] == [Status.OK]


def test_exceptions_that_need_company() -> None:
    error = Error(type="RuntimeError", text="slot 3 is taken", frames=("pick (/a.py:9)",))
    other = msgspec.structs.replace(error, text="slot 17 is taken")
    stage = msgspec.structs.replace(STAGE, concurrency=16)
    episodes = tuple(Episode(number=i, stage=0, group=0, began_s=0.0, took_s=0.1, error=e) for i, e in enumerate([error, other, None]))
    said = failing(facts(stages=(stage,), episodes=episodes))["try.errors"]
    assert said == "2 of 3 episodes raised RuntimeError: slot 3 is taken at pick (/a.py:9) (first at concurrency 16)"


@pytest.mark.parametrize(("kind", "cure"), [("ModuleNotFoundError", "--python PATH"), ("ValueError", "catch it in the agent")])
def test_a_package_that_is_not_there_is_nothing_to_catch(kind: str, cure: str) -> None:
    error = Error(type=kind, text="No module named 'httpx'", frames=("run (/a.py:5)",))
    episodes = (Episode(number=0, stage=0, group=0, began_s=0.0, took_s=0.1, error=error),)
    alone = msgspec.structs.replace(STAGE, concurrency=1)
    (result,) = [r for r in judge(facts(stages=(alone,), episodes=episodes)).results if r.check == "try.errors"]
    assert cure in (result.remedy or "")


GUIDE = Gate(batch_size=256, max_concurrent=128, max_offpolicyness=0, consumer_batch_size=64)


def test_the_gate_with_the_guides_numbers() -> None:
    """(0 + 0 + 1) * 64 rollouts are admitted; 192 of 256 never start."""
    assert capacity(GUIDE, accepted=0, running=0) == 64
    assert capacity(GUIDE, accepted=64, running=0) == 0
    result = next(r for r in judge(facts(gate=GUIDE)).results if r.check == "try.gate")
    assert result.status is Status.FAIL
    assert "(0 + 0 + 1) * 64 = 64 admitted" in result.measured
    assert "192 never start" in (result.consequence or "")
    assert result.remedy == "rollout.max_head_offpolicyness=3"


@pytest.mark.parametrize("batch", [1, 63, 64, 65, 200, 256, 1000])
def test_the_remedy_lets_the_batch_through(batch: int) -> None:
    gate = msgspec.structs.replace(GUIDE, batch_size=batch)
    needed = least_offpolicyness(gate)
    enough = msgspec.structs.replace(gate, max_offpolicyness=needed)
    assert limits_of(enough).admitted >= batch
    if needed:
        assert limits_of(msgspec.structs.replace(gate, max_offpolicyness=needed - 1)).admitted < batch


def test_no_limits_given_are_those_of_areal() -> None:
    """Without max_concurrent_rollouts AReaL takes the consumer's batch."""
    assert limits_of(Gate(batch_size=32)).concurrent == 32
    assert judge(facts(gate=Gate(batch_size=32))).state is Status.OK


def test_a_later_version_opens_the_gate() -> None:
    later = msgspec.structs.replace(GUIDE, version=3)
    assert [r.status for r in judge(facts(gate=later)).results if r.check == "try.gate"] == [Status.OK]


def row(concurrency: int, per_s: float) -> Figures:
    return Figures(name="level", concurrency=concurrency, episodes=8, done=8, failed=0, per_s=per_s)


@pytest.mark.parametrize(
    ("rates", "at"),
    [
        ({1: 10, 2: 20, 4: 40, 8: 80}, None),
        ({1: 10, 2: 20, 4: 38, 8: 39, 16: 40}, 4),
        ({2: 20, 4: 20, 8: 20}, 2),
        ({2: 20, 4: 20}, None),
        ({1: 10, 2: 30, 4: 20, 8: 10}, 2),
    ],
)
def test_the_knee(rates: dict[int, float], at: int | None) -> None:
    assert knee([row(c, r) for c, r in rates.items()]) == at


def test_quantiles_are_values_that_were_measured() -> None:
    assert quantile([], 0.5) is None
    assert quantile([1.0], 0.99) == 1.0
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 3.0


def test_a_terminal_cannot_be_steered() -> None:
    hostile = facts(unusable="\x1b[2J gone", output=("\x1b]0;title\x07",), contract=None)
    text = "\n".join(render(judge(hostile), width=100, colour=False, verbose=True))
    assert "\x1b" not in text and "\x07" not in text


def test_every_check_explains_itself() -> None:
    for check in CHECKS:
        text = check.explanation()
        assert all(f"\n{head}\n" in text for head in ("Story", "Evidence", "Remedy", "Not this when")), check.id


@pytest.mark.parametrize(
    ("peaks", "took_s", "is_told"),
    [
        ((2, 2, 2), (0.2, 0.4, 0.8), True),
        ((2, 4, 4), (0.2, 0.4, 0.8), False),
        ((2, 2, 2), (0.2, 0.2, 0.2), False),
        ((3, 3, 3), (0.2, 0.4, 0.8), False),
    ],
)
def test_a_limit_that_no_look_has_met(peaks: tuple[int, ...], took_s: tuple[float, ...], is_told: bool) -> None:
    stages = tuple(
        msgspec.structs.replace(STAGE, number=n, name="level", concurrency=c, episodes=c, looks=1, places=(), engine_peak=peak, took_s=took)
        for n, (c, peak, took) in enumerate(zip((4, 8, 16), peaks, took_s, strict=True))
    )
    episodes = tuple(
        Episode(number=i, stage=s.number, group=0, began_s=0.0, took_s=s.took_s, reward=1.0) for s in stages for i in range(s.concurrency)
    )
    told = [r.measured for r in judge(facts(stages=stages, episodes=episodes)).results if r.check == "try.limit" and r.status is Status.WARN]
    assert [("at most 2 requests at once" in text) for text in told] == ([True] if is_told else [])
