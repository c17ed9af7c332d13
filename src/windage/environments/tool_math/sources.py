"""From settings to problem sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from windage.environments.tool_math.arithmetic import Arithmetic
from windage.environments.tool_math.config import (
    ArithmeticSource,
    FileSource,
    ReasoningGymSource,
    SourceConfig,
    WordProblemSource,
)
from windage.environments.tool_math.file_source import QuestionFile
from windage.environments.tool_math.problem import ProblemSource
from windage.environments.tool_math.reasoning_gym_source import ReasoningGym
from windage.environments.tool_math.word_problems import WordProblems

__all__ = ["open_sources"]


def open_sources(configs: Sequence[SourceConfig]) -> list[ProblemSource]:
    """One source for each config, with distinct labels.

    Raises:
        DataError: a file is missing or malformed.
    """
    sources: list[ProblemSource] = []
    seen: Counter[str] = Counter()
    for config in configs:
        source = _open(config)
        seen[source.label] += 1
        if seen[source.label] > 1:
            source.label = f"{source.label}-{seen[source.label]}"
        sources.append(source)
    return sources


def _open(config: SourceConfig) -> Arithmetic | WordProblems | ReasoningGym | QuestionFile:
    match config:
        case ArithmeticSource():
            return Arithmetic(config)
        case WordProblemSource():
            return WordProblems(config)
        case ReasoningGymSource():
            return ReasoningGym(config)
        case FileSource():
            return QuestionFile(config)
