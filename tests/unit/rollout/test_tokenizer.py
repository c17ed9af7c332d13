"""Token-exact, append-only chat: what the policy sampled is never encoded again."""

from __future__ import annotations

import json

import pytest
from tests.rollout_fakes import CHATML, save_byte_tokenizer

from windage.environments.protocol import Message
from windage.errors import DataError
from windage.rollout.character_tokenizer import save_character_tokenizer
from windage.rollout.tokenizer import load_tokenizer

USER = Message(role="user", content="12+3?")
TOOL = Message(role="tool", content="=15|")


def test_characters_open_follow_and_decode(characters):
    assert characters.decode(characters.opening([USER])) == "12+3?"
    added = characters.following([USER], [TOOL], sampled_end=characters.encode(">")[0])
    assert characters.decode(added) == "=15|"
    assert characters.stop_token_ids == (20,)
    assert characters.vocab_size == 21


def test_characters_load_in_transformers_too(tmp_path):
    transformers = pytest.importorskip("transformers")
    ours = load_tokenizer(save_character_tokenizer(tmp_path / "c"))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "c")
    assert theirs("12+3?$").input_ids == ours.encode("12+3?$")
    assert theirs.eos_token_id == ours.eos_token_id
    assert len(theirs) == ours.vocab_size


def test_sampled_end_of_turn_is_not_repeated_and_a_missing_one_is_context(chatml):
    """The template's own end of turn is added as context only when the policy did not sample it (trap 25)."""
    end = chatml.encode("<|im_end|>")[0]
    with_end = chatml.following([USER], [TOOL], sampled_end=end)
    without = chatml.following([USER], [TOOL], sampled_end=chatml.encode("x")[0])
    assert chatml.decode(with_end, special=True) == "\n<|im_start|>tool\n=15|<|im_end|>\n<|im_start|>assistant\n"
    assert without == [end, *with_end]


def test_appended_history_equals_one_rendering(chatml):
    end = chatml.encode("<|im_end|>")[0]
    reply = [*chatml.encode("call it"), end]
    appended = chatml.opening([USER]) + reply + chatml.following([USER], [TOOL], sampled_end=end)
    whole = chatml.opening([USER, Message(role="assistant", content="call it"), TOOL])
    assert appended == whole
    assert chatml.preserves([USER], "call it", [TOOL])


def test_a_template_that_rewrites_history_is_noticed(forgetful):
    assert not forgetful.preserves([USER], "<think>hm</think>call", [TOOL])
    assert forgetful.preserves([USER], "call", [TOOL])


def test_the_start_up_check_knows_templates_that_rewrite(characters, chatml, forgetful, tmp_path):
    assert characters.prefix_preserving()
    assert chatml.prefix_preserving(tools=[{"type": "function"}])
    assert not forgetful.prefix_preserving()
    no_tool_role = (
        "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tool') }}{% endif %}"
        + (CHATML.partition("{% for m in messages %}")[2])
    )
    assert load_tokenizer(save_byte_tokenizer(tmp_path / "strict", no_tool_role)).prefix_preserving()


def test_demonstration_spans_are_what_a_rollout_produces(characters, chatml):
    talk = [
        USER,
        Message(role="assistant", content="<12+3>"),
        TOOL,
        Message(role="assistant", content="#15"),
    ]
    pieces = [(characters.decode(ids, special=True), sampled) for ids, sampled in characters.spans(talk)]
    assert pieces == [("12+3?", False), ("<12+3>", True), ("=15|", False), ("#15$", True)]
    flat = [token for ids, _ in chatml.spans(talk) for token in ids]
    assert chatml.decode(flat, special=True) + "\n" == chatml.decode(
        chatml.encode(
            "<|im_start|>user\n12+3?<|im_end|>\n<|im_start|>assistant\n<12+3><|im_end|>\n<|im_start|>tool\n=15|<|im_end|>\n"
            "<|im_start|>assistant\n#15<|im_end|>\n"
        ),
        special=True,
    )
    sampled = "".join(chatml.decode(ids, special=True) for ids, is_sampled in chatml.spans(talk) if is_sampled)
    assert sampled == "<12+3><|im_end|>#15<|im_end|>"


def test_reply_text_drops_only_the_end_of_turn(chatml):
    ids = chatml.encode("<|im_start|>hi<|im_end|>")
    assert chatml.reply_text(ids) == "<|im_start|>hi"
    assert chatml.reply_text(ids[:-1]) == "<|im_start|>hi"


def test_stop_ids_of_the_generation_config_count_too(tmp_path):
    folder = save_byte_tokenizer(tmp_path / "m", CHATML)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [258, 7]}))
    tokenizer = load_tokenizer(folder)
    assert tokenizer.eos_token_id == tokenizer.encode("<|im_end|>")[0]
    assert set(tokenizer.stop_token_ids) == {tokenizer.eos_token_id, 258, 7}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), "no usable tokenizer.json"),
        (lambda folder: (folder / "tokenizer.json").write_text("{"), "not JSON"),
        (lambda folder: (folder / "chat_template.jinja").unlink(), "no chat template"),
        (lambda folder: (folder / "tokenizer_config.json").write_text("{}"), "names no eos_token"),
    ],
)
def test_broken_folders_are_data_errors(tmp_path, spoil, message):
    folder = save_byte_tokenizer(tmp_path / "m", CHATML)
    spoil(folder)
    with pytest.raises(DataError, match=message):
        load_tokenizer(folder)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('system role not supported') }}", "system role not supported"),
        ("{{ messages[0]['content'] }}", "drops the assistant's reply"),
        ("{{ undefined_thing.attribute }}", "UndefinedError"),
    ],
)
def test_templates_that_refuse_are_data_errors(tmp_path, template, message):
    tokenizer = load_tokenizer(save_byte_tokenizer(tmp_path / "m", template))
    with pytest.raises(DataError, match=message):
        tokenizer.following([USER], [TOOL], sampled_end=None)
