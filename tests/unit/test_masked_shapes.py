"""Text of a plain shape is not searched for secrets: no search would find one in it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ray_rl_debug.privacy import masking

TELLING = "Bearer BASIC Basic token password api_key cookie secret hooks sk_live_abcdefg hf_abcdefghijk AKIAABCDEFGHIJ eyJabcdefghijk webhook".split()


@settings(deadline=None, max_examples=500)
@given(st.from_regex(masking._PLAIN.__self__, fullmatch=True, alphabet=st.characters(codec="ascii")))
def test_what_is_not_searched_holds_nothing(text: str) -> None:
    assert masking._searched(text) == masking.mask(text) == text


@pytest.mark.parametrize("word", TELLING)
def test_an_object_of_a_telling_name(word: str) -> None:
    text = f"<{word[:14]} at 0x7f00aa00bb10>"
    assert masking._searched(text) == masking.mask(text) == text


@pytest.mark.parametrize(
    "text", ["<hf_abcdefghijklmnopqrst0123456789 at 0x7f>", "password:[12345]", "http://a:b@1.2.3.4:80", "<sk-abcdefghij0123456789 at 0x1>"]
)
def test_secrets_in_what_only_looks_plain(text: str) -> None:
    assert masking.mask(text) != text
