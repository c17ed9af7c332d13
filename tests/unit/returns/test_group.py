"""Group statistics: by explicit group, over trajectories, with noise, and over valid members only (trap 36)."""

import pytest
import torch

from windage import returns
from windage.segments import Segments


def group_mean(outcomes, groups, lengths=None, **settings):
    outcomes = torch.tensor(outcomes)
    found = returns.group_mean(
        outcomes=outcomes,
        group_of=torch.tensor(groups),
        segments=Segments.from_lengths([1] * len(outcomes) if lengths is None else lengths),
        **settings,
    )
    return found.advantages


def test_members_need_not_be_neighbours():
    mixed = group_mean([1.0, 5.0, 0.0, 7.0], [4, 9, 4, 9], scale="none")
    assert mixed.tolist() == [0.5, -1.0, -0.5, 1.0]


@pytest.mark.parametrize("value", [0.0, 0.1, 1.0, -3.0, 1e6])
def test_a_constant_group_gives_zero_in_spite_of_noise(value):
    """Equal up to float noise, relative to their size: a division by std would blow the noise up to ±1."""
    outcomes = torch.full((4,), value) * (1 + torch.tensor([0.0, 1e-7, -1e-7, 0.0]))
    assert not group_mean(outcomes.tolist(), [0] * 4).any()
    assert not returns.leave_one_out(
        outcomes=outcomes, group_of=torch.zeros(4).long(), segments=Segments.from_lengths([1] * 4)
    ).advantages.any()


def test_a_singleton_gives_zero():
    assert group_mean([5.0, 1.0, 0.0], [0, 1, 1])[0] == 0


def test_members_that_are_not_valid_set_no_baseline():
    valid = torch.tensor([True, True, False, True])
    found = group_mean([1.0, 0.0, 100.0, 0.5], [0] * 4, valid=valid)
    alone = group_mean([1.0, 0.0, 0.5], [0] * 3)
    torch.testing.assert_close(found[valid], alone)
    assert found[2] == 0
    assert not group_mean([1.0, 0.0], [0, 0], valid=torch.tensor([True, False])).any()


def test_every_token_of_a_trajectory_gets_its_advantage_once():
    """A long member pulls the mean no more than a short one."""
    assert group_mean([1.0, 0.0], [0, 0], lengths=[3, 1], scale="none").tolist() == [0.5, 0.5, 0.5, -0.5]


def test_shaping_does_not_wake_a_constant_group():
    """Constant or not is asked of the raw outcome; where it is not, the shaped outcome is centred."""
    shaping = torch.tensor([0.0, -1.0, 0.0, -1.0])
    found = group_mean([1.0, 1.0, 1.0, 0.0], [0, 0, 1, 1], shaping=shaping, scale="none")
    assert found.tolist() == [0.0, 0.0, 1.0, -1.0]


def test_large_outcomes_keep_their_differences():
    """1e6 and 1e6 + 1 in float64 statistics: std is 0.7071, not 0 or 0.5."""
    found = group_mean([1e6, 1e6 + 1], [0, 0], scale="none")
    assert found.tolist() == [0.0, 0.0]  # one part in a million is noise
    found = group_mean([1e4, 1e4 + 1], [0, 0])
    torch.testing.assert_close(found, torch.tensor([-0.70710, 0.70710]), atol=1e-5, rtol=0)


def test_no_trajectory_at_all():
    found = returns.group_mean(
        outcomes=torch.zeros(0), group_of=torch.zeros(0).long(), segments=Segments.from_lengths([])
    )
    assert found.advantages.shape == (0,)
