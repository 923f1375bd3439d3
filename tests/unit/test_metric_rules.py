"""The rules of ``metrics``: each fault is found at its step, healthy runs are left alone, and few points give no verdict."""

from __future__ import annotations

import math

import msgspec
import pytest

pytest.importorskip("scipy", reason="trends need scipy: pip install 'ray-rl-debug[metrics]'")

import made_hard_runs
import made_runs
import numpy as np
from made_runs import ALL_KINDS, FAULTS, KINDS, WANDERING, as_run, healthy

from ray_rl_debug.metrics.judge import judge
from ray_rl_debug.metrics.model import Judgement, MetricsReport, Run, Series, State, Status
from ray_rl_debug.metrics.rules import METRIC_RULES
from ray_rl_debug.metrics.thresholds import THRESHOLDS, read_thresholds
from ray_rl_debug.model.errors import UsageError
from ray_rl_debug.model.report import Certainty

LIMITS = read_thresholds(())


def one(name: str, values: list[float], **settings: str) -> Run:
    series = Series(name=name, steps=tuple(range(1, len(values) + 1)), values=tuple(values))
    return Run(label="made", series={name: series}, settings=settings)


def found(report: MetricsReport, rule: str) -> Judgement:
    return next(f for f in report.findings if f.id == rule)


@pytest.mark.parametrize(("rule", "kind"), [(rule, KINDS[i % 3]) for i, rule in enumerate(FAULTS)])
def test_a_fault_is_found_at_its_step(rule: str, kind: str) -> None:
    metric, fault = FAULTS[rule]
    columns = healthy(91, kind, 200)
    fault(columns, 110)
    named = [f for f in judge(as_run(columns), LIMITS).findings if (f.id, f.metric) == (rule, metric)]
    wanted = 1 if rule == "RRD706" else 111
    assert [abs((f.first_step or 0) - wanted) <= 3 for f in named] == [True]
    assert named[0].certainty is not Certainty.POSSIBLE


@pytest.mark.parametrize("kind", WANDERING)
@pytest.mark.parametrize("rule", ["RRD707", "RRD709", "RRD711", "RRD719"])
def test_a_fault_in_a_run_that_wanders_is_found(rule: str, kind: str) -> None:
    metric, fault = FAULTS[rule]
    columns = healthy(92, kind, 200)
    fault(columns, 90)
    named = [f for f in judge(as_run(columns), LIMITS).findings if (f.id, f.metric) == (rule, metric)]
    assert [abs((f.first_step or 0) - 91) <= 3 for f in named] == [True]


@pytest.mark.parametrize(("kind", "seed", "at"), [("plain", 20_005, 113), ("correlated", 20_024, 90), ("correlated", 20_042, 67)])
def test_the_step_of_a_fall_is_right_where_no_test_is_sure_of_the_fall(kind: str, seed: int, at: int) -> None:
    """A fall over a dozen steps: neither a step nor a bend without end says where it begins."""
    columns = healthy(seed, kind, 200)
    FAULTS["RRD707"][1](columns, at)
    rewards = {name: columns[name] for name in ("critic/score/mean", "critic/score/max", "critic/score/min")}
    named = [f for f in judge(as_run(rewards), LIMITS).findings if f.id == "RRD707"]
    assert [(f.certainty, abs((f.first_step or 0) - at - 1) <= 1) for f in named] == [(Certainty.POSSIBLE, True)]


@pytest.mark.parametrize("seed", range(7))
def test_a_healthy_run_is_left_alone(seed: int) -> None:
    report = judge(as_run(healthy(seed, ALL_KINDS[seed % 7])), LIMITS)
    assert report.findings == ()
    assert report.gaps == ()
    assert report.verdict.state is State.HEALTHY


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_two_hundred_healthy_runs_give_at_most_one_false_alarm_in_a_hundred(kind: str) -> None:
    alarms: dict[str, int] = {}
    for seed in range(200):
        report = judge(as_run(healthy(1000 + seed, kind)), LIMITS)
        for rule in {f.id for f in report.findings}:
            alarms[rule] = alarms.get(rule, 0) + 1
    assert {rule: n for rule, n in alarms.items() if n > 2} == {}


@pytest.mark.parametrize("kind", made_hard_runs.KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_a_healthy_run_that_looks_odd_by_design_is_left_alone(kind: str, seed: int) -> None:
    report = judge(made_hard_runs.told(made_hard_runs.healthy(seed, kind), seed, kind), LIMITS)
    assert (report.findings, report.gaps, report.verdict.state) == ((), (), State.HEALTHY)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", made_hard_runs.KINDS)
def test_two_hundred_odd_runs_give_at_most_one_false_alarm_in_a_hundred(kind: str) -> None:
    alarms: dict[str, int] = {}
    for seed in range(1000, 1200):
        report = judge(made_hard_runs.told(made_hard_runs.healthy(seed, kind), seed, kind), LIMITS)
        for rule in {f.id for f in report.findings}:
            alarms[rule] = alarms.get(rule, 0) + 1
    assert {rule: n for rule, n in alarms.items() if n > 2} == {}


def test_a_reward_that_is_lost_in_a_long_run_that_wanders_is_told() -> None:
    """No test is sure of it: noise that wanders for 1,500 steps could come as far, though not so suddenly, and stay there."""
    columns = made_hard_runs.healthy(10_001, "long")
    FAULTS["RRD707"][1](columns, 733)
    named = [f for f in judge(made_hard_runs.told(columns, 10_001, "long"), LIMITS).findings if f.metric == "critic/score/mean"]
    assert [(f.id, f.certainty, abs((f.first_step or 0) - 734) <= 6) for f in named] == [("RRD707", Certainty.POSSIBLE, True)]


@pytest.mark.parametrize(("rule", "kind"), [*zip(("RRD711", "RRD716", "RRD719"), made_hard_runs.KINDS, strict=True)])
def test_a_fault_in_a_run_that_looks_odd_by_design_is_found(rule: str, kind: str) -> None:
    """Each rule in one kind, as they are long; benchmarks/metrics_alarms.py takes all pairs."""
    metric, fault = FAULTS[rule]
    columns = made_hard_runs.healthy(91, kind)
    at = len(columns[metric]) // 2
    fault(columns, at)
    report = judge(made_hard_runs.told(columns, 91, kind), LIMITS)
    named = [f for f in report.findings if (f.id, f.metric) == (rule, metric)]
    logged = [s for s in made_hard_runs.told(columns, 91, kind).series[metric].steps if s > at]
    assert [(f.first_step or 0) <= logged[3] and (f.first_step or 0) >= at - 5 for f in named] == [True]


def test_every_rule_has_a_fault() -> None:
    assert {r.ID for r in METRIC_RULES} - set(FAULTS) == {"RRD718"}


@pytest.mark.parametrize("rule", [r for r in FAULTS if r not in ("RRD701", "RRD717")])
def test_three_points_give_no_verdict(rule: str) -> None:
    columns = healthy(5, "plain", 200)
    FAULTS[rule][1](columns, 0)
    few = {name: values[:3] for name, values in columns.items()}
    report = judge(as_run(few), LIMITS)
    assert report.findings == ()
    assert report.verdict.state is State.UNKNOWN


def test_what_goes_into_the_weights_is_proven_and_other_nulls_are_possible() -> None:
    run = as_run(healthy(1, "plain", 60))
    values = list(run.series["actor/grad_norm"].values)
    values[29] = math.nan
    null = Series(name="training/rollout_actor_probs_pearson_corr", steps=(1, 2), values=(None, 0.5))
    series = {**run.series, "actor/grad_norm": msgspec.structs.replace(run.series["actor/grad_norm"], values=tuple(values)), null.name: null}
    report = judge(msgspec.structs.replace(run, series=series), LIMITS)
    assert [(f.metric, f.certainty, f.first_step) for f in report.findings] == [
        ("actor/grad_norm", Certainty.PROVEN, 30),
        (null.name, Certainty.POSSIBLE, 1),
    ]


@pytest.mark.parametrize("nothing", [None, math.nan])
def test_a_metric_that_is_measured_every_ten_steps_may_be_null_at_the_others(nothing: float | None) -> None:
    every_ten = [0.3 + i / 1000 if i % 10 == 9 else nothing for i in range(100)]
    assert judge(one("val-core/gsm8k/reward/mean@1", every_ten), LIMITS).findings == ()  # type: ignore[arg-type]
    lost = [*every_ten[:60], *[nothing] * 40]
    assert found(judge(one("val-core/gsm8k/reward/mean@1", lost), LIMITS), "RRD701").first_step == 70  # type: ignore[arg-type]


def test_equal_rewards_of_a_solved_task_and_those_that_are_over_are_possible_only() -> None:
    columns = healthy(3, "plain", 120)
    for name, value in (("critic/advantages/max", 0), ("critic/advantages/min", 0), ("critic/score/mean", 1), ("critic/score/min", 1)):
        columns[name][80:] = value
    solved = found(judge(as_run(columns), LIMITS), "RRD722")
    assert (solved.certainty, solved.first_step) == (Certainty.POSSIBLE, 81)
    assert "may be solved" in solved.summary
    over = healthy(3, "plain", 120)
    for name in ("critic/advantages/max", "critic/advantages/min"):
        over[name][60:70] = 0
    gone = found(judge(as_run(over), LIMITS), "RRD722")
    assert (gone.certainty, "from step 61 to 70, and differ again now" in gone.summary) == (Certainty.POSSIBLE, True)


@pytest.mark.parametrize(("name", "value"), [("reward_std", 0.0), ("frac_reward_zero_std", 1.0)])
def test_other_trainers_tell_equal_rewards_in_their_own_metric(name: str, value: float) -> None:
    usual = [0.3 + 0.01 * (i % 3) for i in range(30)]
    assert found(judge(one(name, [*usual, *[value] * 20]), LIMITS), "RRD722").first_step == 31
    assert judge(one(name, usual), LIMITS).findings == ()


def test_one_reward_for_everything_is_not_near_the_best() -> None:
    nothing = {name: Series(name=name, steps=tuple(range(60)), values=(0.0,) * 60) for name in (f"critic/score/{k}" for k in ("mean", "max", "min"))}
    assert {f.id for f in judge(Run(label="nothing", series=nothing), LIMITS).findings} == {"RRD706", "RRD722"}


def test_a_metric_that_is_always_null_was_not_measured() -> None:
    assert judge(one("actor/grad_norm", [None] * 40), LIMITS).findings == ()  # type: ignore[list-item]


def test_a_correlation_that_is_never_a_number_compares_what_does_not_vary() -> None:
    assert judge(one("training/rollout_actor_probs_pearson_corr", [math.nan] * 40), LIMITS).findings == ()
    assert found(judge(one("actor/pg_loss", [math.nan] * 40), LIMITS), "RRD701").certainty is Certainty.PROVEN


def test_one_minibatch_has_a_narrow_band_and_the_advice_for_experts() -> None:
    values = [1.03] * 30
    assert judge(one("importance_weight/avg", values), LIMITS).findings == ()
    single = found(judge(one("importance_weight/avg", values, **{"actor.ppo_n_minibatches": "1"}), LIMITS), "RRD702")
    assert single.high == pytest.approx(1.01)
    assert [("use_deterministic_algorithms=1" in r, "reduce" in r) for r in single.remedy] == [(True, False)]
    several = found(judge(one("importance_weight/avg", [1.4] * 30, ppo_n_minibatches="4"), LIMITS), "RRD702")
    assert several.remedy[0] == "reduce ppo_n_minibatches (now 4)"


def test_the_cap_is_advised_first_and_then_fresher_samples() -> None:
    bare = found(judge(one("behave_imp_weight/avg", [0.5] * 30), LIMITS), "RRD703")
    assert bare.remedy[0] == "set behave_imp_weight_cap=5"
    capped = found(judge(one("behave_imp_weight/avg", [0.5] * 30, behave_imp_weight_cap="5", max_head_offpolicyness="4"), LIMITS), "RRD703")
    assert capped.remedy[0] == "reduce max_head_offpolicyness (now 4)"
    assert "max_head_offpolicyness=0" in capped.remedy[-1]


def test_staleness_is_judged_by_what_the_run_allows() -> None:
    assert judge(one("staleness", [3.0] * 30), LIMITS).findings == ()
    assert found(judge(one("staleness", [3.0] * 30, **{"rollout.max_head_offpolicyness": "2"}), LIMITS), "RRD704").high == 2


def test_cut_answers_tell_of_growing_sequences() -> None:
    columns = healthy(2, "plain", 200)
    FAULTS["RRD705"][1](columns, 100)
    columns["response_length/mean"][90:] *= np.minimum(1.02 ** np.arange(110), 2.5)
    assert "response_length/mean" in found(judge(as_run(columns), LIMITS), "RRD705").evidence[0]


@pytest.mark.parametrize(
    ("settings", "length", "text"),
    [
        ({"gpu": "NVIDIA A100-SXM4-80GB", "engine": "vllm", "engine_version": "0.10.1"}, 9000, "all three conditions of the known vLLM fault hold"),
        ({"gpu": "NVIDIA H100 80GB HBM3", "engine": "vllm", "engine_version": "0.10.1"}, 9000, "not all conditions"),
        ({"gpu": "B200", "engine": "sglang"}, 9000, "not all conditions"),
        ({"gpu": "B200", "engine": "vllm", "engine_version": "0.11.0"}, 9000, "not all conditions"),
        ({"gpu": "B200", "engine": "vllm", "engine_version": "0.10.2"}, 200, "not all conditions"),
        ({"engine": "vllm"}, 9000, "if all three conditions hold"),
    ],
)
def test_the_three_conditions_of_the_faq(settings: dict[str, str], length: float, text: str) -> None:
    run = one("training/rollout_probs_diff_mean", [0.02] * 30, **settings)
    lengths = {n: Series(name=n, steps=tuple(range(1, 31)), values=(length / 2,) * 30) for n in ("prompt_length/mean", "response_length/mean")}
    finding = found(judge(msgspec.structs.replace(run, series={**run.series, **lengths}), LIMITS), "RRD710")
    assert text in finding.remedy[0]
    assert ("disable_cascade_attn=True" in finding.remedy[0]) == ("not all" not in text)
    assert len(finding.evidence) == 3


def test_a_small_difference_of_probabilities_is_possible_only() -> None:
    report = judge(one("training/rollout_probs_diff_mean", [0.007] * 30), LIMITS)
    assert found(report, "RRD710").certainty is Certainty.POSSIBLE
    assert report.verdict.state is State.HEALTHY or report.verdict.state is State.UNKNOWN


def test_what_is_over_is_possible_only() -> None:
    assert found(judge(one("actor/pg_clipfrac", [0.1] * 20 + [0.6] * 10 + [0.1] * 20), LIMITS), "RRD713").certainty is Certainty.POSSIBLE


def test_single_spikes_are_no_excursion() -> None:
    assert judge(one("actor/ppo_kl", [0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.9, 0.8] * 5), LIMITS).findings == ()


def test_a_metric_that_is_beyond_now_and_then_is_so_twice_in_a_row_one_day() -> None:
    rare = np.random.default_rng(2).random(400) < 0.1
    rare[200:203] = True
    assert judge(one("response/aborted_ratio", [0.2 if b else 0.0 for b in rare]), LIMITS).findings == ()
    rare[200:210] = True
    burst = found(judge(one("response/aborted_ratio", [0.2 if b else 0.0 for b in rare]), LIMITS), "RRD716")
    assert (burst.certainty, burst.first_step) == (Certainty.POSSIBLE, 201)
    rare[390:] = True
    now = found(judge(one("response/aborted_ratio", [0.2 if b else 0.0 for b in rare]), LIMITS), "RRD716")
    assert (now.certainty, abs((now.first_step or 0) - 391) <= 3) == (Certainty.LIKELY, True)


def test_single_samples_worth_a_hundred_do_not_make_a_reward_flat() -> None:
    g = np.random.default_rng(3)
    mean = np.linspace(10, 40, 200) + g.normal(0, 60, 200)
    columns = {"critic/score/mean": mean, "critic/score/max": mean + 20 * (1 + g.pareto(1.1, 200)), "critic/score/min": mean - 20}
    assert judge(as_run(columns), LIMITS).findings == ()
    columns["critic/score/mean"] = 25 + g.normal(0, 2, 200)
    assert found(judge(as_run(columns), LIMITS), "RRD706").certainty is Certainty.LIKELY


def test_rewards_that_are_rarely_given_count_for_the_range() -> None:
    g = np.random.default_rng(4)
    given = (g.random(200) < 0.03).astype(float)
    columns = {"critic/score/mean": given / 64, "critic/score/max": given, "critic/score/min": np.zeros(200)}
    assert "wanted: more than 0.05" in found(judge(as_run(columns), LIMITS), "RRD706").summary


@pytest.mark.parametrize("learns", [True, False])
def test_training_prompts_that_become_harder_teach_as_long_as_both_rewards_rise(learns: bool) -> None:
    g = np.random.default_rng(5)
    columns = healthy(5, "plain", 240)
    rise = np.linspace(0, 0.4, 240)
    columns["critic/score/mean"] = 0.35 + (rise if learns else np.minimum(rise, 0.2)) - 0.2 * (np.arange(240) >= 120) + g.normal(0, 0.01, 240)
    columns["val-core/gsm8k/acc/mean@1"] = 0.35 + rise + g.normal(0, 0.01, 240)
    named = [f.summary for f in judge(as_run(columns), LIMITS).findings if f.id == "RRD709"]
    assert [("does not follow" in text) for text in named] == ([] if learns else [True])


def harder_prompts(fall: float, *, tested: float, at_once: bool = True) -> made_runs.Columns:
    """A run that learns 0.3; at step 121 its prompts become harder (at once, or over 60 steps), and what is tested changes by so much."""
    g, t = np.random.default_rng(6), np.arange(240)
    columns, rise = healthy(6, "plain", 240), np.minimum(np.linspace(0, 0.6, 240), 0.3)
    after = (t >= 120) if at_once else np.clip((t - 119) / 60, 0, 1)
    columns["critic/score/mean"] = 0.5 + rise - fall * after + g.normal(0, 0.01, 240)
    columns["val-core/gsm8k/acc/mean@1"] = np.where((t + 1) % 5 == 0, 0.5 + rise + tested * after + g.normal(0, 0.01, 240), np.nan)
    return columns


def test_a_reward_that_falls_as_prompts_become_harder() -> None:
    def told(fall: float, tested: float, at_once: bool = True) -> list[Certainty | None]:
        run = as_run(harder_prompts(fall, tested=tested, at_once=at_once))
        return [f.certainty for f in judge(run, LIMITS).findings if (f.id, f.metric) == ("RRD707", "critic/score/mean")]

    assert told(0.15, 0.0) == []
    assert told(0.15, -0.15) == [Certainty.POSSIBLE]
    assert told(0.5, 0.0) == [Certainty.POSSIBLE]
    assert told(0.5, -0.5) == [Certainty.LIKELY]
    assert told(0.6, 0.0, at_once=False) == [Certainty.LIKELY]


def test_a_reward_that_stays_while_the_test_rises_is_one_of_harder_prompts() -> None:
    g, t = np.random.default_rng(7), np.arange(240)
    columns = healthy(7, "plain", 240)
    columns["critic/score/mean"] = 0.3 + g.normal(0, 0.02, 240)
    columns["val-core/gsm8k/acc/mean@1"] = np.where((t + 1) % 10 == 0, 0.3 + t / 800 + g.normal(0, 0.01, 240), np.nan)
    assert "RRD706" not in {f.id for f in judge(as_run(columns), LIMITS).findings}
    columns["val-core/gsm8k/acc/mean@1"] = np.where((t + 1) % 10 == 0, 0.3 + g.normal(0, 0.01, 240), np.nan)
    assert found(judge(as_run(columns), LIMITS), "RRD706").certainty is Certainty.LIKELY


def test_a_flat_reward_near_its_best_is_good() -> None:
    columns = healthy(3, "plain", 200)
    columns["critic/score/mean"][:] = 0.97 + np.random.default_rng(0).normal(0, 0.01, 200)
    columns["val-core/gsm8k/acc/mean@1"][:] = np.nan
    assert "RRD706" not in {f.id for f in judge(as_run(columns), LIMITS).findings}


def test_a_collapse_of_entropy_beside_the_best_reward_is_possible_only() -> None:
    columns = healthy(94, "plain", 200)
    columns["actor/entropy"][60:] *= np.maximum(0.88 ** np.arange(1, 141), 0.01)
    finding = found(judge(as_run(columns), LIMITS), "RRD714")
    assert finding.certainty is Certainty.POSSIBLE
    assert "ends near its best" in finding.summary


def test_noise_that_hides_a_rise_gives_unknown() -> None:
    values = list(np.random.default_rng(1).normal(0.4, 0.12, 60))
    run = one("critic/score/mean", values)
    bounds = {n: Series(name=n, steps=(1,), values=(v,)) for n, v in (("critic/score/max", 1.0), ("critic/score/min", 0.0))}
    report = judge(msgspec.structs.replace(run, series={**run.series, **bounds}), LIMITS)
    assert [(j.status, j.id) for j in report.judged if j.id == "RRD706"] == [(Status.UNKNOWN, "RRD706")]


def test_slow_steps_with_longer_answers_are_possible_only() -> None:
    columns = healthy(6, "plain", 200)
    for name in ("response_length/mean", "timing_s/gen", "timing_s/step"):
        columns[name][100:] *= 1.8
    finding = found(judge(as_run(columns), LIMITS), "RRD719")
    assert finding.certainty is Certainty.POSSIBLE
    assert "sequences grow as well" in finding.summary


def longer(steps: int, factor: float, power: float) -> made_runs.Columns:
    """A healthy run whose answers grow all along, and whose steps take longer with this power of their length."""
    columns = healthy(6, "plain", steps)
    growth = factor ** (np.arange(steps) / steps)
    columns["response_length/mean"] *= growth
    for name in ("timing_s/gen", "timing_s/update_actor", "timing_s/ref", "timing_s/step"):
        columns[name] *= growth**power
    columns["perf/throughput"] *= growth ** (1 - power)
    return columns


def test_answers_that_grow_step_by_step_make_steps_slower_and_that_is_good() -> None:
    report = judge(as_run(longer(200, 2.5, 1.5)), LIMITS)
    assert report.findings == ()
    told = {j.id: j.summary for j in report.judged if j.metric in ("timing_s/step", "timing_s/update_actor", "perf/throughput")}
    assert all("and sequences grow as well: response_length/mean" in told[rule] for rule in ("RRD719", "RRD720", "RRD721"))


def test_answers_that_grow_a_little_explain_steps_that_become_a_little_slower() -> None:
    assert judge(as_run(longer(200, 1.22, 1.9)), LIMITS).findings == ()


def test_steps_that_become_slower_by_far_more_than_answers_grow_are_likely() -> None:
    named = {f.id: f.certainty for f in judge(as_run(longer(200, 1.4, 4.0)), LIMITS).findings}
    assert named == dict.fromkeys(("RRD719", "RRD720", "RRD721"), Certainty.LIKELY)


@pytest.mark.parametrize(("slow", "certainty"), [(7, Certainty.POSSIBLE), (12, Certainty.LIKELY)])
def test_a_handful_of_slow_steps_at_the_end_may_be_a_burst(slow: int, certainty: Certainty) -> None:
    columns = healthy(6, "plain", 200)
    for name in ("timing_s/gen", "timing_s/step"):
        columns[name][-slow:] *= 2
    assert found(judge(as_run(columns), LIMITS), "RRD720").certainty is certainty


def test_a_throughput_that_falls_at_once_with_longer_answers_is_possible() -> None:
    columns = healthy(6, "plain", 200)
    columns["response_length/mean"][100:] *= 1.8
    columns["perf/throughput"][100:] *= 0.6
    assert found(judge(as_run(columns), LIMITS), "RRD721").certainty is Certainty.POSSIBLE


def test_steps_that_become_slower_by_more_than_answers_grow_are_likely() -> None:
    columns = healthy(6, "plain", 200)
    columns["response_length/mean"] *= np.linspace(1.0, 1.6, 200)
    for name in ("timing_s/gen", "timing_s/step"):
        columns[name][150:] *= 2.5
    report = judge(as_run(columns), LIMITS)
    for finding in (found(report, "RRD719"), found(report, "RRD720")):
        assert finding.certainty is Certainty.LIKELY
        assert "sequences grow too little to explain it" in " ".join((finding.summary, *finding.evidence))


def test_the_kl_between_engine_and_trainer_is_none_to_the_reference() -> None:
    assert judge(one("rollout_corr/kl", [4.0] * 40), LIMITS).findings == ()
    assert found(judge(one("kl", [4.0] * 40), LIMITS), "RRD712").certainty is Certainty.LIKELY


def test_a_kl_that_takes_off_below_its_limit_is_possible() -> None:
    rises = [0.01 + 0.00002 * i + (0.02 * (i - 80) if i >= 80 else 0.0) + 0.0003 * math.sin(7 * i) for i in range(120)]
    finding = found(judge(one("kl", rises), LIMITS), "RRD712")
    assert (finding.certainty, abs((finding.first_step or 0) - 80) <= 3) == (Certainty.POSSIBLE, True)
    assert "still below its limit of 1" in finding.summary
    away_from_zero = [0.5 * (1 - math.exp(-i / 40)) + 0.0003 * math.sin(7 * i) for i in range(120)]
    assert judge(one("kl", away_from_zero), LIMITS).findings == ()


def test_steps_that_are_logged_every_ten_are_not_missing() -> None:
    steps = tuple(range(10, 410, 10))
    series = Series(name="actor/entropy", steps=steps, values=(1.0,) * len(steps))
    run = Run(label="made", series={series.name: series})
    assert judge(run, LIMITS).findings == ()
    gone = msgspec.structs.replace(series, steps=(*steps[:20], *steps[22:]), values=(1.0,) * 38)
    finding = found(judge(Run(label="made", series={series.name: gone}), LIMITS), "RRD717")
    assert finding.first_step == 210
    assert finding.summary == "2 of 40 steps are missing: 210 to 220"


@pytest.mark.parametrize(("is_ended", "state"), [(True, State.TROUBLE), (None, State.UNKNOWN)])
def test_a_run_without_a_training_step(is_ended: bool | None, state: State) -> None:
    validation = Series(name="val-core/gsm8k/acc/mean@1", steps=(0,), values=(0.1,))
    report = judge(Run(label="made", series={validation.name: validation}, is_ended=is_ended), LIMITS)
    assert report.verdict.state is state
    assert [f.id for f in report.findings] == (["RRD718"] if is_ended else [])


def test_unknown_names_give_no_verdict() -> None:
    report = judge(one("my/thing", [1.0, 2.0] * 30), LIMITS)
    assert report.verdict.state is State.UNKNOWN
    assert "--map" in report.verdict.summary


def test_a_given_name_counts() -> None:
    values = list(np.linspace(0.9, 0.1, 80))
    assert judge(one("my/thing", values), LIMITS, {"reward": "my/thing"}).verdict.state is State.TROUBLE


@pytest.mark.parametrize("given", ["grad_norm_rise", "nothing=1", "policy_kl=much", "policy_kl=nan", "policy_kl=-1"])
def test_wrong_thresholds_are_refused(given: str) -> None:
    with pytest.raises(UsageError) as e:
        read_thresholds([given])
    assert e.value.hint


def test_thresholds_are_used() -> None:
    values = [0.2] * 30
    assert found(judge(one("actor/ppo_kl", values), LIMITS), "RRD712")
    assert judge(one("actor/ppo_kl", values), read_thresholds(["policy_kl=0.5"])).findings == ()
    assert set(LIMITS) == set(THRESHOLDS)


def test_a_rule_that_raises_costs_itself_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from ray_rl_debug.metrics.rules import kl

    monkeypatch.setattr(kl, "judge", lambda bench: 1 / 0)
    report = judge(as_run(made_runs.healthy(1, "plain")), LIMITS)
    assert [(g.id, g.where) for g in report.gaps] == [("RRD906", "RRD712")]
    assert report.verdict.state is State.HEALTHY


def test_what_looks_like_a_fall_is_not_called_good_where_no_test_tells_it_from_noise() -> None:
    """A reward that bends as it learns and then sinks slowly: noise that wanders could draw the same curve."""
    g, t = np.random.default_rng(3), np.arange(160)
    sinks = 0.2 + 0.4 * (1 - np.exp(-t / 60)) - 0.004 * np.maximum(t - 110, 0) + g.normal(0, 0.03, 160)
    judged = next(j for j in judge(one("critic/score/mean", [float(v) for v in sinks]), LIMITS).judged if j.id == "RRD707")
    assert judged.status is Status.UNKNOWN
    assert "could make this by itself" in judged.summary
    stays = next(j for j in judge(one("critic/score/mean", [float(v) for v in sinks[:110]]), LIMITS).judged if j.id == "RRD707")
    assert (stays.status, stays.summary) == (Status.GOOD, "does not fall")
