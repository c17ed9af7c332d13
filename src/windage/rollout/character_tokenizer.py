"""The quickstart's tokenizer: one id a character, in an ordinary Hugging Face tokenizer folder."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Regex, Tokenizer
from tokenizers.decoders import Fuse
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split

__all__ = ["CHARACTERS", "END", "save_character_tokenizer"]

CHARACTERS = "0123456789+-*=?#|<> "
"""Digits, operators and marks: ``?`` ends a question, ``<…>`` is a tool call, ``=…|`` its result, ``#`` the answer."""

END = "$"
"""End of the episode: the eos token."""

_UNKNOWN = " "

_TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}"
    "{% if message['role'] == 'assistant' and loop.last %}{{ eos_token }}{% endif %}{% endfor %}"
)


def save_character_tokenizer(folder: str | Path) -> Path:
    """Write the tokenizer and its chat template, which joins the messages and nothing else.

    Raises:
        OSError: the folder cannot be written.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    vocabulary = {character: index for index, character in enumerate([*CHARACTERS, END])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=_UNKNOWN))
    tokenizer.add_special_tokens([END])
    tokenizer.pre_tokenizer = Split(Regex(r"[\s\S]"), behavior="isolated")
    tokenizer.decoder = Fuse()
    tokenizer.save(str(path / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": _UNKNOWN,
        "unk_token": _UNKNOWN,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 1024,
    }
    (path / "tokenizer_config.json").write_text(json.dumps(settings, indent=1), encoding="utf-8")
    (path / "chat_template.jinja").write_text(_TEMPLATE, encoding="utf-8")
    return path
