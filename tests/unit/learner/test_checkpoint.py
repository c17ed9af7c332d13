"""Checkpoints are complete or ignored, exact, and never of broken weights (traps 20-22)."""

import subprocess
import sys

import pytest
import torch
from tests.models import tiny_model, vocabulary

from windage.errors import DataError, LearnerError
from windage.learner.checkpoint import load_checkpoint, save_checkpoint
from windage.learner.config import LearnerConfig, LoraConfig
from windage.learner.critic import ValueHead
from windage.learner.model import load_policy
from windage.learner.optimizer import Optimizer
from windage.learner.state import LearnerState
from windage.publish.folder import MARKER


def fresh(folder, **config):
    config = LearnerConfig(device="cpu", lr=1e-2, warmup=3, schedule="cosine", total_updates=20, **config)
    policy = load_policy(folder, config=config, limit=vocabulary(folder), temperature=1.0, trust=False)
    critic = ValueHead(policy.width, 8)
    settings = {"lr": config.lr, "warmup": config.warmup, "schedule": config.schedule, "total": config.total_updates}
    return LearnerState(
        policy=policy,
        optimizer=Optimizer(policy.trainable, **settings),
        critic=critic,
        critic_optimizer=Optimizer(critic.named_parameters(), lr=1e-2),
    )


def step(state):
    """A training step that depends on the RNG, the weights and the optimizers."""
    for name, optimizer in state.optimizers.items():
        for parameter in optimizer.parameters:
            parameter.grad = parameter.detach() * 0.1 + torch.randn(parameter.shape)
        optimizer.step(optimizer.grad_norm())
        assert name
    state.step += 1
    state.version += 1
    state.critic_batches += 1


def bits(state):
    return {f"{n}.{k}": v.clone() for n, m in state.modules.items() for k, v in m.state_dict().items()}


def same(left, right):
    assert left.keys() == right.keys()
    return all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize("lora", [None, LoraConfig(rank=2)])
def test_n_steps_equal_m_and_restore_and_the_rest(tmp_path, lora):
    folder = tiny_model(tmp_path / "m")
    torch.manual_seed(0)
    straight = fresh(folder, lora=lora)
    for _ in range(3):
        step(straight)
    save_checkpoint(straight, tmp_path / "c" / "3")
    for _ in range(4):
        step(straight)

    torch.manual_seed(99)
    resumed = fresh(folder, lora=lora)
    step(resumed)
    load_checkpoint(resumed, tmp_path / "c" / "3")
    assert (resumed.step, resumed.version, resumed.critic_batches) == (3, 2, 3)
    assert resumed.optimizer.updates == 3
    for _ in range(4):
        step(resumed)
    assert same(bits(straight), bits(resumed))
    assert resumed.optimizer.lr == straight.optimizer.lr


def test_without_its_marker_it_is_ignored(tmp_path):
    state = fresh(tiny_model(tmp_path / "m"))
    save_checkpoint(state, tmp_path / "c")
    (tmp_path / "c" / MARKER).unlink()
    with pytest.raises(DataError, match="not a committed folder"):
        load_checkpoint(state, tmp_path / "c")


@pytest.mark.parametrize("part", ["policy", "critic"])
def test_weights_that_are_no_numbers_are_never_saved(tmp_path, part):
    state = fresh(tiny_model(tmp_path / "m"))
    save_checkpoint(state, tmp_path / "c")
    with torch.no_grad():
        next(state.modules[part].parameters()).view(-1)[0] = torch.nan
    with pytest.raises(LearnerError, match=f"checkpoint of the {part} refused: .* is not finite"):
        save_checkpoint(state, tmp_path / "c")
    load_checkpoint(state, tmp_path / "c")
    assert all(torch.isfinite(tensor).all() for tensor in bits(state).values())


@pytest.mark.parametrize("writer", ["windage.learner.weights.save_file", "windage.learner.checkpoint.torch.save"])
def test_a_full_disk_is_one_clear_error_and_the_last_good_one_survives(tmp_path, monkeypatch, writer):
    state = fresh(tiny_model(tmp_path / "m"))
    save_checkpoint(state, tmp_path / "c" / "last")
    good = bits(state)
    step(state)

    def full(*arguments, **settings):
        raise RuntimeError("PytorchStreamWriter failed writing file: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(writer, full)
        with pytest.raises(DataError, match=r"cannot write the checkpoint to .*last; got .*No space left") as caught:
            save_checkpoint(state, tmp_path / "c" / "last")
    assert isinstance(caught.value.__cause__, OSError)
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["last"]
    load_checkpoint(state, tmp_path / "c" / "last")
    assert same(good, bits(state))


@pytest.mark.process
def test_a_really_full_disk(tmp_path):
    """The kernel's own refusal reaches the caller as the same error."""
    folder = tiny_model(tmp_path / "m")
    script = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from tests.unit.learner.test_checkpoint import fresh, save_checkpoint\n"
        "from windage.errors import DataError\n"
        f"state = fresh(Path({str(folder)!r}))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))\n"
        "try:\n"
        f"    save_checkpoint(state, Path({str(tmp_path / 'c')!r}))\n"
        "except DataError as error:\n"
        "    print(error); sys.exit(7)\n"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert out.returncode == 7, out.stderr
    assert "cannot write the checkpoint" in out.stdout
    assert not (tmp_path / "c").exists()


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    save_checkpoint(fresh(tiny_model(tmp_path / "a")), tmp_path / "c")
    other = fresh(tiny_model(tmp_path / "b", layers=3))
    with pytest.raises(DataError, match=r"cannot restore .*names differ"):
        load_checkpoint(other, tmp_path / "c")
