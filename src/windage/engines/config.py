"""EngineConfig: what an embedded engine is told when it starts. No torch here."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from windage.errors import explain

__all__ = ["EngineConfig"]


class EngineConfig(BaseModel):
    """An embedded engine: one model in one process. Defaults marked (Windage) are ours; others name their origin."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(description="Folder of a Hugging Face causal LM (config.json, safetensors, tokenizer).")
    name: str = Field(default="", description="Model name in the OpenAI routes; empty takes the folder's name.")
    device: str = Field(default="auto", description="auto: CUDA when there is one, else CPU; or a torch device.")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        default="auto", description="auto: float32 on CPU (bf16 helps only batch 1 there), bfloat16 on CUDA."
    )
    attention: Literal["auto", "ragged", "sdpa"] = Field(
        default="auto",
        description="Decode attention. ragged: compiled CPU loop over exactly the cached tokens, float32 only; "
        "sdpa: torch's kernel over padded rows, any device and dtype. auto: ragged where it can run.",
    )
    forward: Literal["auto", "lean", "hf"] = Field(
        default="auto",
        description="hf: the model's own modules; lean: our forward for Llama, Mistral, Qwen2 and Qwen3 with fused "
        "projections, checked against the modules at start-up. auto: lean where it applies.",
    )
    pack: bool = Field(
        default=True,
        description="Float32 on CPU: keep large matrices a second time in the layout of oneDNN's kernels. Decoding is "
        "1.2-2.3 times faster (Windage, measured); the weights take twice the memory.",
    )
    threads: int = Field(
        default=0,
        ge=0,
        description="CPU threads of the engine; 0 = half of the cores (at least 1), leaving the rest to the learner, "
        "because an oversubscribed step is 2-3 times slower (facts.md).",
    )
    max_batch: int = Field(default=64, ge=1, description="Sequences in generation at once (Windage).")
    max_waiting: int = Field(default=16384, ge=1, description="Requests that may wait; more are refused (429).")
    max_context: int = Field(default=0, ge=0, description="Longest prompt + completion; 0 = the model's own limit.")
    kv_tokens: int = Field(
        default=0,
        ge=0,
        description="Token slots of the KV cache; 0 = what fits in kv_fraction of the free memory.",
    )
    kv_fraction: float = Field(
        default=0.25, gt=0, le=0.95, description="Share of the memory free at start that the KV cache may take."
    )
    prefill_tokens: int = Field(
        default=0, ge=0, description="Prompt tokens computed in one step; 0 = 1024 on CPU, 8192 on CUDA (Windage)."
    )
    prefix_cache: bool = Field(
        default=True, description="Reuse the KV of a shared prefix computed under the same policy version."
    )
    retained: int = Field(
        default=-1, ge=-1, description="Finished sequences whose KV stays for reuse; -1 = as many as max_batch."
    )
    vocab_size: int = Field(
        default=0,
        ge=0,
        description="Ids from here on are padding, never sampled or scored; 0 = the tokenizer's size.",
    )
    routes: bool = Field(default=False, description="Record the experts chosen at every position (mixture-of-experts).")
    seed: int = Field(default=0, description="Seeds the requests that bring none, by order of arrival.")
    policy_version: int = Field(
        default=-1,
        ge=-1,
        description="Version of the weights as loaded; -1 = not published yet, so that the first publish is 0. "
        "Records refuse tokens stamped -1.",
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=0, ge=0, le=65535, description="Port to listen on; 0 = a free one.")
    trust_remote_code: bool = Field(default=False, description="Run model code found in the folder.")

    @model_validator(mode="after")
    def _cross_checks(self) -> Self:
        if self.attention == "ragged" and (self.dtype in ("bfloat16", "float16") or self.device.startswith("cuda")):
            raise ValueError(
                explain(
                    "attention=ragged runs in float32 on the CPU only",
                    got=f"device={self.device}, dtype={self.dtype}",
                    do="use attention=auto",
                )
            )
        if self.kv_tokens and self.max_context and self.kv_tokens < self.max_context:
            raise ValueError(
                explain(
                    "the KV cache cannot hold one sequence of max_context",
                    got=f"kv_tokens={self.kv_tokens}",
                    expected=f">= max_context={self.max_context}",
                )
            )
        return self
