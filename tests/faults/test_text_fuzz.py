"""Any text at the doors through which strings leave: they never raise, they are quick, and what has left once is not changed again."""

from __future__ import annotations

import json
import time

import msgspec
from faults.made_up_secrets import make_secrets
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ray_rl_debug.model import codec
from ray_rl_debug.model.foreign_text import as_text, map_text
from ray_rl_debug.model.snapshot import Gap, Process
from ray_rl_debug.privacy.allowlist import allowed_arguments, allowed_entry_point, allowed_environment
from ray_rl_debug.privacy.masking import mask
from ray_rl_debug.privacy.redact import MAX_CHARS, made_safe, redact

QUICK_S = 1.0
"""For one text of some thousand characters, on a loaded machine."""
bytes_ = st.characters(codec=None, exclude_categories=())
text = st.text(bytes_, max_size=300)
SIGNS = (
    "password= token: --secret  -p mysql  curl -u  https:// @ : / = ' \" \\ { } ; , ? & sk- hf_ ghp_ eyJ Bearer  Basic  cookie: AKIA :// https:/"
    " hooks.slack.com/services/ -----BEGIN PRIVATE KEY----- x 1 \n \t"
)
words = st.sampled_from([*SIGNS.split(" "), " "])
near = st.lists(words | st.text(bytes_, max_size=6), max_size=40).map("".join)
any_text = text | near
relaxed = settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])


@relaxed
@given(any_text)
@example("password=" * 400)
@example("https://" + "a:" * 2000)
@example("--" + "a" * 3000 + " key")
@example("token=/" * 500)
@example("\ud800\udce9password=\udcff")
def test_masking_any_text(given_text: str) -> None:
    """Any text at all comes to the masking, also half surrogates and thousands of signs that begin a secret.
    It comes out in time, can be encoded, and masking it again changes nothing."""
    began = time.monotonic()
    once = mask(given_text)
    again = mask(once)
    assert time.monotonic() - began < QUICK_S
    assert again == once
    assert as_text(once) == once
    assert len(once) <= len(as_text(given_text)) + 8 * (once.count("***"))


@relaxed
@given(any_text)
def test_redacting_any_line(line: str) -> None:
    """Any line of a log comes to the redaction.
    It comes out short, printable and on one line."""
    shown = redact(line)
    assert len(shown) <= MAX_CHARS and "\n" not in shown and shown.isprintable()
    assert shown.encode() is not None


@relaxed
@given(st.lists(any_text, max_size=12), st.sampled_from(make_secrets()))
def test_no_argument_of_any_command_line_is_shown(arguments: list[str], secret: tuple[str, str]) -> None:
    """A secret stands somewhere in any command line, entry point or environment.
    It is not shown, and what is shown is short."""
    value, form = secret
    for position in (0, len(arguments) // 2, len(arguments)):
        line = [*arguments[:position], form, *arguments[position:]]
        shown = allowed_arguments(line)
        assert value[:12] not in shown
        assert len(shown) <= 400 + 8
    assert value[:12] not in (allowed_entry_point(" ".join(("python", "train.py", "--x", value, form))) or "")
    assert value[:12] not in str(allowed_environment([("NCCL_X", form), *((name, form) for name in arguments)]))


@relaxed
@given(
    st.recursive(
        st.none() | st.integers() | any_text, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4), max_leaves=20
    )
)
@example({"\ud800": None})
def test_any_structure_is_written_and_safe_once(value: object) -> None:
    """Any text stands anywhere in facts.
    They are written, read back as they were made safe, and making them safe again changes nothing."""
    safe = made_safe(value)
    assert made_safe(safe) == safe
    assert json.loads(msgspec.json.encode(safe)) == safe
    assert map_text(value, as_text) == map_text(map_text(value, as_text), as_text)


@relaxed
@given(any_text, any_text)
def test_the_codec_takes_any_text(first: str, second: str) -> None:
    """Any text comes to the codec past the doors.
    It is written, and can be read."""
    gap = Gap(id="RRD900", where=first, what=second, reason=first + second)
    assert msgspec.json.decode(codec.encode(gap), type=Gap).what == as_text(second)
    process = Process(pid=1, title=first, env={first: second})
    assert msgspec.json.decode(codec.encode(process), type=Process).title == as_text(first)
