"""Stop strings and streamed text, with a tokenizer whose tokens end inside characters."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models import byte_tokenizer, char_tokenizer

from windage.engines.embedded.openai_api.text_writer import TextWriter, before_stop
from windage.engines.embedded.stop_strings import StopStrings

BYTES = byte_tokenizer()
CHARS = char_tokenizer()
TEXTS = st.text(alphabet="ab </tool>sey€é12", max_size=30)


def first_stop(tokenizer, ids, stops):
    """By the definition: the first token after which the whole text holds a stop string."""
    for count in range(1, len(ids) + 1):
        if any(stop in tokenizer.decode(ids[:count], skip_special_tokens=False) for stop in stops):
            return count
    return None


@pytest.mark.parametrize("tokenizer", [BYTES, CHARS], ids=["bytes", "chars"])
@given(text=TEXTS, stops=st.lists(st.text(alphabet="ab </tool>€é", min_size=1, max_size=6), min_size=1, max_size=3))
def test_stop_strings_are_seen_at_the_token_that_completes_them(tokenizer, text, stops):
    ids = tokenizer.encode(text)
    watch = StopStrings(
        stops,
        decode=lambda part: tokenizer.decode(part, skip_special_tokens=False),
        text_of=lambda token: tokenizer.decode([token], skip_special_tokens=False),
    )
    seen = None
    for count in range(1, len(ids) + 1):
        if watch.completed(SimpleNamespace(ids=[7, 7, *ids[:count]], prompt=2)):
            seen = count
            break
    assert seen == first_stop(tokenizer, ids, stops)


def test_the_prompt_is_not_searched():
    ids = CHARS.encode("ab")
    watch = StopStrings(["ab"], decode=CHARS.decode, text_of=lambda token: CHARS.decode([token]))
    assert not watch.completed(SimpleNamespace(ids=ids, prompt=1))
    assert watch.completed(SimpleNamespace(ids=ids, prompt=0))


@pytest.mark.parametrize("tokenizer", [BYTES, CHARS], ids=["bytes", "chars"])
@given(text=TEXTS, stops=st.lists(st.text(alphabet="ab </tool>€", min_size=1, max_size=5), max_size=2))
def test_streamed_pieces_are_the_text_before_the_stop(tokenizer, text, stops):
    ids = tokenizer.encode(text)
    ids = ids[: first_stop(tokenizer, ids, stops)]  # the engine samples no further
    writer = TextWriter(tokenizer.decode, stops)
    pieces = [writer.push(token) for token in ids] + [writer.finish()]
    assert "".join(pieces) == before_stop(tokenizer.decode(ids), stops)
    assert not any("\ufffd" in piece for piece in pieces)


def test_text_is_held_back_only_while_undecided():
    writer = TextWriter(CHARS.decode, ["stop"])
    assert [writer.push(token) for token in CHARS.encode("as sto")] == ["a", "", "s ", "", "", ""]
    assert writer.push(CHARS.encode("a")[0]) == "stoa"
