"""Tiny random models with a tokenizer, on disk, for tests: `tiny_model(folder, "qwen3")` and load it like any other.

Vocabulary: the printable characters below, one token each, after the special tokens ``<pad> <eos> <user> <assistant>
<tool>``. ``padded_vocab`` adds rows to the embedding that no tokenizer knows (trap 27).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CHARACTERS = "0123456789+-*/=()<>_ \n.,:;?!'\"{}[]abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZé€"
SPECIALS = ("<pad>", "<eos>", "<user>", "<assistant>", "<tool>")
CHAT_TEMPLATE = (
    "{% if tools %}<tool>{{ tools | tojson }}<eos>{% endif %}"
    "{% for m in messages %}"
    "{% if m.role == 'assistant' %}<assistant>{{ m.content or '' }}<eos>"
    "{% elif m.role == 'tool' %}<tool>{{ m.content }}<eos>"
    "{% else %}<user>{{ m.content }}<eos>{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
SHAPES: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama"},
    "qwen2": {"model_type": "qwen2"},
    "qwen3": {"model_type": "qwen3", "head_dim": 16},
    "mistral_window": {"model_type": "mistral", "sliding_window": 8},
    "qwen3_moe": {
        "model_type": "qwen3_moe",
        "head_dim": 16,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "decoder_sparse_step": 1,
        "norm_topk_prob": True,
    },
    "mixtral": {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None},
    "gpt2": {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 512},
    "gpt_neox": {"model_type": "gpt_neox"},
}


def char_tokenizer(characters: str = CHARACTERS, *, chat_template: str = CHAT_TEMPLATE) -> Any:
    """A fast tokenizer with one token per character; pad is ``<pad>``, eos is ``<eos>``."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocab = {token: index for index, token in enumerate((*SPECIALS, *dict.fromkeys(characters)))}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIALS])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", clean_up_tokenization_spaces=False
    )
    fast.chat_template = chat_template
    return fast


def byte_tokenizer(merges: int = 200) -> Any:
    """A byte-level BPE tokenizer, whose tokens may end inside a character; trained on a fixed text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=256 + len(SPECIALS) + merges,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["the quick brown fox </tool> says 12+34=46\n" * 3, "answer: <stop> € é"], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", clean_up_tokenization_spaces=False
    )


def tiny_model(
    folder: Path,
    shape: str = "qwen3",
    *,
    seed: int = 0,
    hidden: int = 64,
    layers: int = 2,
    padded_vocab: int = 0,
    tied: bool = True,
    scale: float = 1.0,
    tokenizer: Any = None,
    **config: Any,
) -> Path:
    """Write a random causal LM (about 0.1 M parameters) and its tokenizer to ``folder``; returns the folder.

    ``scale`` multiplies the embedding so that distributions are peaked (with tied weights the logits grow with it).
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = char_tokenizer() if tokenizer is None else tokenizer
    settings = {
        "vocab_size": len(tokenizer) + padded_vocab,
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "tie_word_embeddings": tied,
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None,
        **SHAPES[shape],
        **config,
    }
    model_type = settings.pop("model_type")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **settings), dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim >= 2:
                parameter.mul_(3.0)
            elif "bias" in name:
                parameter.add_(0.05)
        model.get_input_embeddings().weight.mul_(scale)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def perturb(source: Path, target: Path, *, seed: int = 1, size: float = 0.02) -> Path:
    """Copy a model folder with noise on every weight: a stand-in for a training step."""
    import shutil

    import torch
    from safetensors.torch import load_file, save_file

    shutil.copytree(source, target)
    tensors = load_file(source / "model.safetensors")
    noise = torch.Generator().manual_seed(seed)
    moved = {name: t + size * torch.randn(t.shape, generator=noise, dtype=t.dtype) for name, t in tensors.items()}
    save_file(moved, target / "model.safetensors", metadata={"format": "pt"})
    return target


def vocabulary(folder: Path) -> int:
    """Rows of the embedding, padding included."""
    return int(json.loads((folder / "config.json").read_text())["vocab_size"])
