"""One comparison from a command line: what is asked, of whom, and where it is kept."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ray_rl_debug.endpoints import trial as trials
from ray_rl_debug.endpoints.asking import Show, ask_all
from ray_rl_debug.endpoints.openai_client import Endpoint, Sampling
from ray_rl_debug.endpoints.prompts import Prompt, fingerprint, read_prompts
from ray_rl_debug.endpoints.recordings import Head, Keeper, Recording, in_order
from ray_rl_debug.endpoints.rewards import load_reward, with_rewards
from ray_rl_debug.endpoints.sources import read_answers
from ray_rl_debug.endpoints.transformers_model import Reference
from ray_rl_debug.model.errors import UsageError
from ray_rl_debug.rollouts.answers import Answer, Missing, Probe, Trial
from ray_rl_debug.rollouts.compare import Comparison, compare

Own = Mapping[tuple[str, int], Answer]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The command line of ``rollout compare``."""

    files: tuple[Path, ...]
    engine: str | None = None
    model: str | None = None
    reference: str | None = None
    after_update: str | None = None
    limit: int = 64
    samples: int = 1
    max_tokens: int = 64
    temperature: float = 0.0
    seed: int | None = None
    reward: str | None = None
    dtype: str | None = None
    device: str = "cpu"
    generate: bool = True
    concurrency: int = 4
    timeout_s: float = 120.0
    retries: int = 4
    output: Path | None = None

    def endpoint(self, url: str, model: str | None = None) -> Endpoint:
        key = os.environ.get("OPENAI_API_KEY")
        return Endpoint(url, model, timeout_s=self.timeout_s, retries=self.retries, api_key=key)

    def sampling(self) -> Sampling:
        return Sampling(max_tokens=self.max_tokens, temperature=self.temperature, seed=self.seed)

    def head(self, name: str, prompts: Sequence[Prompt], precision: str | None = None) -> Head:
        return Head(
            name=name,
            prompts=fingerprint(prompts),
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            seed=self.seed,
            samples=self.samples,
            precision=precision,
        )

    def keep(self, file: str) -> Path | None:
        return None if self.output is None else self.output / file


def run(asked: Asked, show: Show) -> tuple[Trial, Comparison]:
    """Ask, score, compare; the answers are kept in the folder `asked.output` as they come.

    Raises:
        RayRlDebugError: of one of the kinds that the parts raise.
    """
    _check(asked)
    trial, missing = _live(asked, show) if asked.engine else _recorded(asked, show)
    return trial, compare(trial, missing)


def _limited(found: tuple[Trial, list[Missing]], max_tokens: int | None) -> tuple[Trial, list[Missing]]:
    """The trial with the longest answer that was asked for."""
    return msgspec.structs.replace(found[0], max_tokens=max_tokens), found[1]


def _check(asked: Asked) -> None:
    if asked.engine is not None:
        if len(asked.files) != 1:
            raise UsageError(
                "with --engine, one FILE holds the prompts", hint="rayrl-debug rollout compare prompts.jsonl --engine URL --reference FOLDER"
            )
        if asked.reference is None:
            raise UsageError("with --engine, a reference is needed", hint="give --reference FOLDER (a model) or --reference URL (a second endpoint)")
    elif len(asked.files) + (asked.reference is not None) != 2:
        raise UsageError("without --engine, two recordings are needed, or one and --reference", hint="rayrl-debug rollout compare --help")
    elif asked.reference is not None and _is_url(asked.reference):
        raise UsageError("a recording is compared with a model's folder or with another recording", hint="give --reference FOLDER")


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def _live(asked: Asked, show: Show) -> tuple[Trial, list[Missing]]:
    assert asked.engine is not None
    assert asked.reference is not None
    prompts = read_prompts(asked.files[0], asked.limit)
    by_key = {p.key: p for p in prompts}
    engine = asked.endpoint(asked.engine, asked.model)
    other = asked.endpoint(asked.reference) if _is_url(asked.reference) else Reference(asked.reference, precision=asked.dtype, device=asked.device)
    name = f"{engine.model} at {engine.url}"
    with Keeper(asked.keep("engine.jsonl"), asked.head(name, prompts)) as keeper:
        ask_all(lambda p, n: engine.answer(p, asked.sampling(), n), prompts, asked.samples, keeper, concurrency=asked.concurrency, show=show)
        answers = in_order(keeper.known.values(), [p.key for p in prompts])
    answers = trials.spell_prompts(answers, engine)
    found = trials.probes(prompts, engine, other)
    cache = engine.cache_dtype()
    if isinstance(other, Endpoint):
        own = _own_answers(asked, prompts, other, f"{other.model} at {other.url}", show)
        answers, own = _rewarded(asked, answers, own, by_key)
        trial = trials.against_answers(
            answers,
            own,
            temperature=asked.temperature,
            has_template=any(p.messages is not None for p in prompts),
            found_probes=found,
            names=(name, f"{other.model} at {other.url}"),
            scorer=other,
        )
        return _limited((msgspec.structs.replace(trial[0], cache_dtype=cache), trial[1]), asked.max_tokens)
    old: list[Answer] = []
    temperature: float | None = asked.temperature
    if asked.after_update and not Path(asked.after_update).is_dir():
        old = list(read_answers(Path(asked.after_update)).answers)
        again = trials.rescored(old, engine)
        # Tokens that were chosen before the update say nothing about how the engine chooses now.
        answers, temperature = (answers, asked.temperature) if again is None else (again, None)
    own = _own_answers(asked, prompts, other, other.name, show) if asked.generate and not old else {}
    answers = trials.fill_tokens(answers, other, by_key)
    answers, own = _rewarded(asked, answers, own, by_key)
    compared, missing = _with_model(asked, answers, own, other, old, found, by_key if not old else {}, name, show, temperature, engine)
    compared = msgspec.structs.replace(compared, cache_dtype=cache)
    return _limited((compared, missing), None if temperature is None else asked.max_tokens)


def _with_model(
    asked: Asked,
    answers: list[Answer],
    own: Own,
    reference: Reference,
    old: list[Answer],
    found: tuple[Probe, ...],
    prompts: Mapping[str, Prompt],
    name: str,
    show: Show,
    temperature: float | None,
    engine: Endpoint | None = None,
) -> tuple[Trial, list[Missing]]:
    before = None
    if asked.after_update:
        if old:
            before = trials.before_update(old, answers)
        else:
            before_model = Reference(asked.after_update, precision=reference.precision, device=asked.device)
            show(f"scoring with the old weights of {asked.after_update}")
            before = tuple(s for a in answers if a.error is None and (s := before_model.score(a)) is not None)
    trial, missing = trials.against_model(
        answers,
        own,
        reference,
        temperature=temperature,
        has_template=any(p.messages is not None for p in prompts.values()),
        found_probes=found,
        prompts=prompts,
        name=name,
        show=show,
        engine=engine,
    )
    if before is not None:
        trial = msgspec.structs.replace(trial, before=before)
    return trial, missing


def _recorded(asked: Asked, show: Show) -> tuple[Trial, list[Missing]]:
    first = read_answers(asked.files[0])
    name = _name(first, asked.files[0])
    if asked.reference is not None:
        reference = Reference(asked.reference, precision=asked.dtype, device=asked.device)
        answers = trials.fill_tokens(first.answers, reference, {})
        old = []
        if asked.after_update and not Path(asked.after_update).is_dir():
            old = list(read_answers(Path(asked.after_update)).answers)
        return _limited(_with_model(asked, answers, {}, reference, old, (), {}, name, show, first.head.temperature), first.head.max_tokens)
    second = read_answers(asked.files[1])
    temperature = first.head.temperature if first.head.temperature == second.head.temperature else None
    others = {(a.key, a.sample): a for a in second.answers}
    names = (name, _name(second, asked.files[1]))
    trial, missing = trials.against_answers(first.answers, others, temperature=temperature, has_template=False, found_probes=(), names=names)
    notes = [Missing(what=f"rows of {p.name}", reason=n) for p, r in zip(asked.files, (first, second), strict=False) for n in r.notes]
    return _limited((trial, [*missing, *notes]), first.head.max_tokens)


def _name(recording: Recording, path: Path) -> str:
    return f"{recording.head.name} ({path.name})" if recording.head.name else path.name


def _own_answers(asked: Asked, prompts: Sequence[Prompt], other: Reference | Endpoint, name: str, show: Show) -> Own:
    is_model = isinstance(other, Reference)
    head = asked.head(name, prompts, other.precision if isinstance(other, Reference) else None)
    with Keeper(asked.keep("reference.jsonl"), head) as keeper:
        # one model in this process answers one prompt at a time
        ask_all(
            lambda p, n: other.answer(p, asked.sampling(), n),
            prompts,
            asked.samples,
            keeper,
            concurrency=1 if is_model else asked.concurrency,
            show=show,
            name="reference",
        )
        return dict(keeper.known)


def _rewarded(asked: Asked, answers: list[Answer], own: Own, prompts: Mapping[str, Prompt]) -> tuple[list[Answer], Own]:
    if asked.reward is None:
        return answers, own
    reward = load_reward(asked.reward)
    return with_rewards(answers, reward, prompts), {(a.key, a.sample): a for a in with_rewards(own.values(), reward, prompts)}
