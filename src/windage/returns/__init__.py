"""Return estimators: rewards, values and ratios to advantages and critic targets. All arrays are over action tokens."""

from windage.returns.copc import copc
from windage.returns.credit import Credit
from windage.returns.gae import gae
from windage.returns.group_mean import group_mean
from windage.returns.leave_one_out import leave_one_out
from windage.returns.length_adaptive import length_adaptive
from windage.returns.overlong import overlong
from windage.returns.vtrace import vtrace

__all__ = ["Credit", "copc", "gae", "group_mean", "leave_one_out", "length_adaptive", "overlong", "vtrace"]
