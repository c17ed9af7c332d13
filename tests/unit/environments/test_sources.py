"""Problems are pure functions of (split, seed, index), and no held-out question trains."""

from __future__ import annotations

import itertools
import sys

import pytest
from pydantic import ValidationError

from windage.environments.tool_math.arithmetic import Arithmetic
from windage.environments.tool_math.config import (
    ArithmeticSource,
    ReasoningGymSource,
    ToolMathConfig,
    WordProblemSource,
)
from windage.environments.tool_math.families import FAMILIES
from windage.environments.tool_math.problem import split_of
from windage.environments.tool_math.tasks import ToolMathTasks
from windage.environments.tool_math.word_problems import WordProblems
from windage.errors import DataError

MIXED = ToolMathConfig(
    format="fenced", sources=(ArithmeticSource(share=2), WordProblemSource(), ArithmeticSource(max_digits=2))
)


def ids(tasks, count, **start):
    return [task.task_id for task in itertools.islice(tasks.train(**start), count)]


def test_order_and_ids_depend_on_seed_and_start_alone():
    one, two = (ToolMathTasks(MIXED, seed=3, group_size=4) for _ in range(2))
    first = list(itertools.islice(one.train(), 40))
    assert first == list(itertools.islice(two.train(), 40))
    assert first[17:] == list(itertools.islice(two.train(start=17), 23))
    assert first != list(itertools.islice(ToolMathTasks(MIXED, seed=4, group_size=4).train(), 40))
    assert len({task.task_id for task in first}) == 40
    assert len({task.seed for task in first}) == 40
    assert {task.group_size for task in first} == {4}
    assert len(one) == sys.maxsize


def test_shares_are_kept_in_every_round():
    tasks = list(itertools.islice(ToolMathTasks(MIXED, seed=0, group_size=1).train(), 40))
    counts = {name: sum(task.source == name for task in tasks) for name in {task.source for task in tasks}}
    assert counts == {"arithmetic": 20, "word_problems": 10, "arithmetic-2": 10}


def test_held_out_questions_are_distinct_never_train_and_grow_by_prefix():
    tasks = ToolMathTasks(ToolMathConfig(sources=(ArithmeticSource(max_digits=1),)), seed=0, group_size=2)
    held_out = tasks.held_out(20)
    assert held_out[:7] == tasks.held_out(7)
    questions = {task.data["question"] for task in held_out}
    assert len(questions) == 20
    trained = {task.data["question"] for task in itertools.islice(tasks.train(), 3000)}
    assert not trained & questions
    assert len(trained) > 200  # nearly all of the 300 questions less an eighth


def test_too_few_held_out_questions_is_an_error_and_no_endless_loop():
    tasks = ToolMathTasks(
        ToolMathConfig(sources=(ArithmeticSource(max_digits=1, operators="+"),)), seed=0, group_size=1
    )
    with pytest.raises(DataError, match="too few held-out"):
        tasks.held_out(90)


@pytest.mark.parametrize("operators", ["+", "-", "*", "+-*"])
def test_arithmetic_answers_are_right_and_operands_in_range(operators):
    source = Arithmetic(ArithmeticSource(operators=operators, min_digits=2, max_digits=3))
    for index in range(50):
        problem = source.problem("train", index, seed=1)
        left, operator, right = next(problem.program.partition(sign) for sign in operators if sign in problem.program)
        exact = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}[operator](int(left), int(right))
        assert problem.answer == str(exact)
        assert {len(left), len(right)} <= {2, 3}
        assert split_of(problem.question) == "train"


def test_word_problems_are_solved_by_their_program():
    source = WordProblems(WordProblemSource(largest=50))
    questions = set()
    for index in range(80):
        problem = source.problem("held_out", index, seed=0)
        assert int(problem.answer) == eval(problem.program)
        assert "{" not in problem.question
        questions.add(problem.question)
    assert len(questions) > 70


def test_impossible_settings_are_refused_with_the_reason():
    for broken, reason in [
        ({"sources": [{"name": "arithmetic", "min_digits": 3, "max_digits": 2}]}, "reversed"),
        ({"sources": [{"name": "reasoning_gym", "family": "rubiks_cube"}], "format": "fenced"}, "allow-list"),
        ({"sources": [{"name": "word_problems"}]}, "format=plain"),
        ({"sources": []}, "at least 1"),
        ({"sauces": []}, "sauces"),
    ]:
        with pytest.raises(ValidationError, match=reason):
            ToolMathConfig.model_validate(broken)


def test_every_family_on_the_allow_list_scores_itself_and_not_junk():
    reasoning_gym = pytest.importorskip("reasoning_gym")
    assert len(set(FAMILIES)) == len(FAMILIES)
    for family in FAMILIES:
        data, again = (reasoning_gym.create_dataset(family, seed=5, size=2**20) for _ in range(2))
        for index in (0, 2**20 - 1):
            entry = data[index]
            assert again[index]["question"] == entry["question"], family
            assert data.score_answer(str(entry["answer"]), entry) >= 0.99, family
            assert data.score_answer("junk", entry) < 0.99, family


def test_reasoning_gym_tasks_carry_what_regenerates_their_entry():
    reasoning_gym = pytest.importorskip("reasoning_gym")
    config = ToolMathConfig(format="fenced", sources=(ReasoningGymSource(family="gcd"),))
    tasks = ToolMathTasks(config, seed=0, group_size=1)
    train, held_out = list(itertools.islice(tasks.train(), 6)), tasks.held_out(6)
    for task in (*train, *held_out):
        scorer = task.data["scorer"]
        data = reasoning_gym.create_dataset(scorer["family"], seed=scorer["seed"], size=2**20)
        assert data[scorer["index"]]["question"] == task.data["question"]
    assert not {t.data["question"] for t in train} & {t.data["question"] for t in held_out}
