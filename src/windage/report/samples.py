"""Episodes as text: what the policy sampled is highlighted, what it was shown is not."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from windage.records import Trajectory

__all__ = ["sample_html", "sample_record"]


def sample_record(trajectory: Trajectory, *, prompt: str, limit: int = 4000) -> dict[str, Any]:
    """One line of ``samples.jsonl``: the episode as segments of text, marked ``action`` where the policy sampled it.

    ``prompt`` is the opening as the model saw it; longer segments are cut to ``limit`` characters.
    """
    segments: list[dict[str, Any]] = [{"text": _cut(prompt, limit), "action": False}]
    for turn in trajectory.turns:
        segments.append({"text": _cut(turn.text, limit), "action": True, "turn": turn.turn_id})
        if turn.observation:
            segments.append({"text": _cut(turn.observation, limit), "action": False})
    return {
        "task_id": trajectory.task_id,
        "reward": trajectory.reward,
        "success": trajectory.metrics.get("success"),
        "stop_reason": trajectory.stop_reason.value,
        "policy_version": trajectory.version,
        "tokens": trajectory.action_tokens,
        "segments": segments,
    }


def sample_html(sample: Mapping[str, Any]) -> str:
    """One episode as a card."""
    facts = [f"after {sample.get('step', 0)} batches", f"task {sample.get('task_id', '?')}"]
    facts += [f"{name.replace('_', ' ')} {sample[name]}" for name in ("tokens", "stop_reason") if name in sample]
    reward = sample.get("reward")
    mark = "good" if isinstance(reward, int | float) and reward > 0 else "poor"
    body = "".join(_segment(segment) for segment in sample.get("segments", ()))
    return (
        f'<article class="sample"><header><b class="{mark}">reward {escape(str(reward))}</b> '
        f"<span>{escape(' · '.join(facts))}</span></header><pre>{body}</pre></article>"
    )


def _segment(segment: Mapping[str, Any]) -> str:
    text = escape(str(segment.get("text", "")))
    return f"<mark>{text}</mark>" if segment.get("action") else f"<span>{text}</span>"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} … [{len(text) - limit} more characters]"
