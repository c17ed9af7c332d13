"""Real tokenizer folders."""

from __future__ import annotations

import pytest
from tests.rollout_fakes import CHATML, FORGETFUL, save_byte_tokenizer

from windage.rollout.character_tokenizer import save_character_tokenizer
from windage.rollout.tokenizer import load_tokenizer


@pytest.fixture
def characters(tmp_path):
    return load_tokenizer(save_character_tokenizer(tmp_path / "characters"))


@pytest.fixture
def chatml(tmp_path):
    return load_tokenizer(save_byte_tokenizer(tmp_path / "chatml", CHATML))


@pytest.fixture
def forgetful(tmp_path):
    return load_tokenizer(save_byte_tokenizer(tmp_path / "forgetful", FORGETFUL))
