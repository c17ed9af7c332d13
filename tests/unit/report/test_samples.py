from __future__ import annotations

import numpy as np

from windage.records import Row, StopReason, Trajectory, Turn
from windage.report.samples import sample_html, sample_record

ROW = Row(
    row_id="r",
    trajectory_id="t",
    group_id="g",
    token_ids=np.arange(3, dtype=np.int32),
    action_mask=np.array([False, True, True]),
    behavior_logprobs=np.array([np.nan, -1, -1], dtype=np.float32),
    policy_version=np.array([-1, 4, 4], dtype=np.int32),
    rewards=np.zeros(3, dtype=np.float32),
    turn_ids=np.array([-1, 0, 1], dtype=np.int32),
    stop_reason=StopReason.ENV_DONE,
)


def test_what_the_policy_sampled_is_marked_and_nothing_else():
    turns = (
        Turn(turn_id=0, row=0, start=1, stop=2, finish_reason="stop", text="<calc>", observation="84"),
        Turn(turn_id=1, row=0, start=2, stop=3, finish_reason="stop", text="x" * 50),
    )
    episode = Trajectory(
        trajectory_id="t",
        group_id="g",
        task_id="task",
        rows=(ROW,),
        reward=1.0,
        stop_reason=StopReason.ENV_DONE,
        turns=turns,
        metrics={"success": 1.0},
    )
    record = sample_record(episode, prompt="12*7?", limit=20)
    assert [(part["text"][:6], part["action"]) for part in record["segments"]] == [
        *(("12*7?", False), ("<calc>", True), ("84", False), ("xxxxxx", True))
    ]
    assert "30 more characters" in record["segments"][-1]["text"]
    assert (record["policy_version"], record["tokens"], record["stop_reason"]) == (4, 2, "env_done")
    html = sample_html({"step": 3, **record})
    assert "<mark>&lt;calc&gt;</mark><span>84</span>" in html
    assert 'class="good"' in html
