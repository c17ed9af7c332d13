"""Every error Windage raises, in one tree.

    WindageError
    ├── ConfigError (ValueError)             a recipe or setting is wrong; nothing has started
    ├── DataError (ValueError)               a dataset, model folder or run folder is missing or malformed
    ├── RecordError (ValueError)             a trajectory, row or batch breaks its invariants at the door
    ├── StalenessError (RuntimeError)        a batch breaks the hard staleness bound, or versions run backwards
    ├── EngineError (RuntimeError)           an engine refused or failed a request
    │   └── EngineUnavailable                the engine process is gone or not routable; retry elsewhere
    ├── EnvironmentFailure (RuntimeError)    a tool, reward or environment failed; the sample is invalid, not wrong
    ├── LearnerError (RuntimeError)          the learner process failed or went away
    ├── PublishError (RuntimeError)          weights could not be written, loaded or proved to have changed
    ├── DeadlineExceeded (TimeoutError)      a wait ran out; the message says for what, since when, and on whom
    └── RunStopped (RuntimeError)            the run stopped by a declared rule (counts by reason in the message)

Messages follow one pattern: *what* happened · *got* · *expected* · *what to do*.
"""

from __future__ import annotations

__all__ = [
    "ConfigError",
    "DataError",
    "DeadlineExceeded",
    "EngineError",
    "EngineUnavailable",
    "EnvironmentFailure",
    "LearnerError",
    "PublishError",
    "RecordError",
    "RunStopped",
    "StalenessError",
    "WindageError",
    "explain",
]


class WindageError(Exception):
    """Root of every error raised on purpose by Windage."""


class ConfigError(WindageError, ValueError):
    """A recipe or setting is wrong; raised before anything starts."""


class DataError(WindageError, ValueError):
    """A dataset, model folder or run folder is missing or malformed."""


class RecordError(WindageError, ValueError):
    """A record breaks its invariants at the door."""


class StalenessError(WindageError, RuntimeError):
    """A batch breaks the hard staleness bound, or versions run backwards."""


class EngineError(WindageError, RuntimeError):
    """An engine refused or failed a request."""


class EngineUnavailable(EngineError):
    """The engine process is gone, or not routable until it is re-synced."""


class EnvironmentFailure(WindageError, RuntimeError):
    """A tool, reward or environment failed: the sample is invalid, never reward 0."""


class LearnerError(WindageError, RuntimeError):
    """The learner process failed or went away."""


class PublishError(WindageError, RuntimeError):
    """Weights could not be written, loaded, or proved to have changed."""


class DeadlineExceeded(WindageError, TimeoutError):
    """A wait ran out of time."""


class RunStopped(WindageError, RuntimeError):
    """The run stopped by a declared rule."""


def explain(what: str, *, got: object = None, expected: object = None, do: str | None = None) -> str:
    """Join the four parts of an error message in the house order.

    >>> explain("clip interval is reversed", got=(1.2, 0.8), expected="low <= 1 <= high", do="swap the bounds")
    'clip interval is reversed; got (1.2, 0.8); expected low <= 1 <= high; swap the bounds'
    """
    parts = [what]
    if got is not None:
        parts.append(f"got {got}")
    if expected is not None:
        parts.append(f"expected {expected}")
    if do is not None:
        parts.append(do)
    return "; ".join(parts)
