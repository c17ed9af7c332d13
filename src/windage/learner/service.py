"""Service: the learner itself, as the process serves it. Synchronous; one call at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from windage.algorithms import get
from windage.errors import ConfigError, LearnerError, PublishError, explain
from windage.learner.attention import rows_of
from windage.learner.checkpoint import load_checkpoint, save_checkpoint
from windage.learner.critic import build_critic
from windage.learner.forward import hidden_states
from windage.learner.memory import resident_bytes
from windage.learner.model import Policy, load_policy, materialise
from windage.learner.optimizer import Optimizer
from windage.learner.packed import pack
from windage.learner.protocol import Demonstration, LearnerStatus, Published, StepReport
from windage.learner.self_check import check_packing
from windage.learner.setup import LearnerSetup
from windage.learner.state import LearnerState
from windage.learner.tokenizer_files import copy_tokenizer, tokenizer_size
from windage.learner.update import Update
from windage.learner.warm_start import imitate
from windage.learner.weights import fingerprint, plain_weights, refuse_non_finite, save_tensors
from windage.publish.folder import drop_old_versions, version_folder, writing
from windage.records import TrainBatch

__all__ = ["Service"]


class Service:
    """Implements the calls of :class:`~windage.learner.protocol.Learner` on this machine.

    Raises:
        ConfigError, DataError: the setup cannot be served; nothing was trained.
    """

    def __init__(self, setup: LearnerSetup) -> None:
        self.setup = setup
        config = setup.learner
        self.algorithm = _algorithm(setup.algorithm)
        self.root = Path(setup.publish_folder)
        self.model_folder = materialise(setup.model, tokenizer=setup.tokenizer, folder=self.root / "base")
        self.tokenizer = Path(setup.tokenizer) if setup.tokenizer else self.model_folder
        self.vocab_size = tokenizer_size(self.tokenizer)
        torch.manual_seed(setup.seed)
        trust = getattr(setup.model, "trust_remote_code", False)
        policy = load_policy(
            self.model_folder, config=config, limit=self.vocab_size, temperature=setup.temperature, trust=trust
        )
        check_packing(policy)
        self.state = LearnerState(policy=policy, optimizer=_policy_optimizer(policy, setup))
        if self.algorithm.critic:
            critic = build_critic(config.critic, policy, folder=self.model_folder, seed=setup.seed, trust=trust)
            self.state.critic = critic
            self.state.critic_optimizer = Optimizer(
                critic.named_parameters(),
                lr=config.critic.lr,
                betas=config.betas,
                eps=config.eps,
                weight_decay=config.critic.weight_decay,
                max_grad_norm=config.critic.max_grad_norm,
            )
        self._update = Update(self.state, algorithm=self.algorithm, config=config)

    def warm_start(
        self, demonstrations: Sequence[Demonstration], *, steps: int, note: Callable[[str], None] = lambda text: None
    ) -> Mapping[str, float]:
        """Supervised imitation before step 0.

        Raises:
            LearnerError: training has begun.
        """
        if self.state.step or self.state.version >= 0:
            raise LearnerError(
                explain("warm start comes before the first publish", got=f"version {self.state.version}")
            )
        return imitate(
            self.state.policy,
            demonstrations,
            steps=steps,
            config=self.setup.learner.warm_start,
            seed=self.setup.seed,
            note=note,
        )

    def train(self, batch: TrainBatch) -> StepReport:
        """Consume one batch."""
        return self._update.train(batch)

    def publish(self, version: int) -> Published:
        """Write the policy as ``version``: the next one, or the current one again after a restore.

        Raises:
            PublishError: out of order, weights that are not finite, or the disk refuses.
        """
        started = time.perf_counter()
        if version not in (self.state.version, self.state.version + 1) or version < 0:
            raise PublishError(explain("versions are published in order", got=version, expected=self.state.version + 1))
        policy = self.state.policy
        tensors = plain_weights(policy.hf, policy.compute)
        refuse_non_finite(tensors, f"version {version}", PublishError)
        target = version_folder(self.root, version)
        digest = fingerprint(tensors)
        with writing(target, f"version {version}", error=PublishError) as draft:
            policy.hf.config.save_pretrained(draft.folder)
            save_tensors(tensors, draft.folder / "model.safetensors")
            copy_tokenizer(self.tokenizer, draft.folder)
            draft.marker.update(version=version, fingerprint=digest)
        drop_old_versions(self.root, keep=self.setup.publish_keep)
        self.state.version = version
        ids = self._probe_ids()
        return Published(
            version=version,
            path=str(target),
            fingerprint=digest,
            probe_ids=ids,
            probe_logprobs=self._score(ids),
            seconds=time.perf_counter() - started,
        )

    def save(self, path: str) -> None:
        """Write a checkpoint."""
        save_checkpoint(self.state, Path(path))

    def load(self, path: str) -> LearnerStatus:
        """Restore a checkpoint exactly."""
        load_checkpoint(self.state, Path(path))
        return self.status()

    def status(self) -> LearnerStatus:
        """Step, version and size."""
        policy = self.state.policy
        return LearnerStatus(
            version=self.state.version,
            step=self.state.step,
            parameters=sum(parameter.numel() for parameter in policy.hf.parameters()),
            trainable=sum(parameter.numel() for _, parameter in policy.trainable),
            device=str(policy.device),
            resident_bytes=resident_bytes(policy.device),
        )

    def _probe_ids(self) -> np.ndarray:
        """The same random ids at every publish, within the model's context."""
        longest = getattr(self.state.policy.hf.config.get_text_config(), "max_position_embeddings", None) or 2**31
        count = min(self.setup.probe_tokens, longest)
        ids = np.random.default_rng(self.setup.seed).integers(0, self.state.policy.limit, count)
        return ids.astype(np.int32)

    def _score(self, ids: np.ndarray) -> np.ndarray:
        """Log-probs of ``ids`` at temperature 1; element 0 is NaN."""
        policy = self.state.policy
        packed = pack([ids], device=policy.device)
        with torch.no_grad(), rows_of(packed):
            hidden = hidden_states(policy, packed)[:-1]
            logprobs, _ = policy.logprobs(hidden, packed.token_ids[1:], temperature=1.0)
        return np.concatenate([[np.nan], logprobs.cpu().numpy()]).astype(np.float32)


def _algorithm(settings: Mapping[str, object]) -> Any:
    name = settings.get("name")
    if not isinstance(name, str):
        raise ConfigError(explain("algorithm.name is missing", got=dict(settings), do="name one, for example copc"))
    return get(name, **{key: value for key, value in settings.items() if key != "name"})


def _policy_optimizer(policy: Policy, setup: LearnerSetup) -> Optimizer:
    config = setup.learner
    if not policy.trainable:
        raise ConfigError(explain("no parameter of the policy is trainable", do="check lora and freeze_layers"))
    return Optimizer(
        policy.trainable,
        lr=config.lr,
        betas=config.betas,
        eps=config.eps,
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
        warmup=config.warmup,
        schedule=config.schedule,
        total=config.total_updates,
    )
