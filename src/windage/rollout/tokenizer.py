"""ChatTokenizer: messages to ids and ids to text, token-exact and append-only. No torch, no transformers.

Text that the policy sampled is never encoded again. What an observation adds is found by rendering the conversation
with a stand-in for the reply and encoding only what follows it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from windage.environments.protocol import Message
from windage.errors import DataError, explain

__all__ = ["ChatTokenizer", "load_tokenizer"]

_STAND_IN = "\u2042reply\u2042"


class ChatTokenizer:
    """One model's tokenizer and chat template.

    ``vocab_size``      ids at or above it do not exist
    ``eos_token_id``    ends a turn when it is sampled
    ``stop_token_ids``  every id that ends a turn (some chat models end turns and documents differently)
    """

    def __init__(self, tokenizer: Tokenizer, template: str, settings: Mapping[str, Any], stops: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._settings = dict(settings)
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=_EXTENSIONS)
        environment.globals["raise_exception"] = _raise  # pyright: ignore[reportArgumentType]
        environment.globals["strftime_now"] = _now  # pyright: ignore[reportArgumentType]
        environment.filters["tojson"] = _tojson
        self._template = environment.from_string(template)
        self.vocab_size = tokenizer.get_vocab_size(with_added_tokens=True)
        self.stop_token_ids = tuple(sorted(set(stops)))
        self.eos_token_id = stops[0]
        self._stop_texts = {stop: tokenizer.decode([stop], skip_special_tokens=False) for stop in self.stop_token_ids}

    def opening(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] = ()) -> list[int]:
        """Ids of the first prompt, generation prompt included."""
        return self.encode(self._render(_plain(messages), tools, generate=True))

    def following(
        self,
        history: Sequence[Message],
        observation: Sequence[Message],
        *,
        sampled_end: int | None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> list[int]:
        """Ids that ``observation`` adds after a reply to ``history``, up to the next generation prompt.

        ``sampled_end`` is the last sampled id: when it ended the turn itself, the template's own end is not repeated.
        """
        rest = self._after_reply(history, observation, tools)
        end = self._stop_texts.get(-1 if sampled_end is None else sampled_end)
        if end and rest.startswith(end):
            rest = rest[len(end) :]
        return self.encode(rest)

    def preserves(
        self,
        history: Sequence[Message],
        reply: str,
        observation: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> bool:
        """True when rendering the longer conversation repeats the prompt and the reply as they were (trap 24)."""
        before = self._render(_plain(history), tools, generate=True)
        messages = [*_plain(history), {"role": "assistant", "content": reply}, *_plain(observation)]
        return self._render(messages, tools, generate=True).startswith(before + reply.strip())

    def prefix_preserving(self, *, tools: Sequence[Mapping[str, Any]] = ()) -> bool:
        """The start-up check (trap 24): :meth:`preserves` for plain and thinking replies, before both kinds of turn.

        A role that the template refuses is not tried. False means that rows fork, or keep what was sampled
        (``rollout.history``), whenever an episode meets the rewriting; each time is counted.
        """
        opening = Message(role="user", content="2+3?")
        earlier = [opening, Message(role="assistant", content="call"), Message(role="user", content="5")]
        for history, reply in itertools.product(([opening], earlier), ("call", "<think>\nwhy\n</think>\n\ncall")):
            for role in ("tool", "user"):
                try:
                    kept = self.preserves(history, reply, [Message(role=role, content="5")], tools=tools)
                except DataError:
                    continue
                if not kept:
                    return False
        return True

    def spans(
        self, conversation: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] = ()
    ) -> Iterator[tuple[list[int], bool]]:
        """A solved conversation as (ids, sampled?) pieces, cut exactly as a rollout would have produced them.

        An assistant turn is its text and the id that ends a turn, unless the environment's closing mark ends it.
        """
        replies = [index for index, message in enumerate(conversation) if message.role == "assistant"]
        start, ended = 0, None
        for index in replies:
            if start == 0:
                yield self.opening(conversation[:index], tools=tools), False
            else:
                seen, observation = conversation[: start - 1], conversation[start:index]
                yield self.following(seen, observation, sampled_end=ended, tools=tools), False
            ids = self.encode(conversation[index].content)
            ends = self._ends_itself(conversation, index)
            ended = None if ends else self.eos_token_id
            yield (ids if ends else [*ids, self.eos_token_id]), True
            start = index + 1

    def _ends_itself(self, conversation: Sequence[Message], index: int) -> bool:
        """True where the template adds no end of turn: the environment's closing mark ended the reply."""
        if index + 1 >= len(conversation):
            return False
        rest = self._after_reply(conversation[:index], conversation[index + 1 : index + 2], ())
        return not any(rest.startswith(text) for text in self._stop_texts.values())

    def encode(self, text: str) -> list[int]:
        """Ids of ``text``; special tokens in it are recognised, none are added."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        """Text of ``ids``; special tokens are left out unless asked for."""
        return self._tokenizer.decode(list(map(int, ids)), skip_special_tokens=not special)

    def reply_text(self, ids: Sequence[int]) -> str:
        """What the model said: the text without the id that ended the turn, tool-call markers kept."""
        said = ids[:-1] if len(ids) and int(ids[-1]) in self._stop_texts else ids
        return self.decode(said, special=True)

    def _after_reply(
        self, history: Sequence[Message], observation: Sequence[Message], tools: Sequence[Mapping[str, Any]]
    ) -> str:
        messages = [*_plain(history), {"role": "assistant", "content": _STAND_IN}, *_plain(observation)]
        text = self._render(messages, tools, generate=True)
        at = text.rfind(_STAND_IN)
        if at < 0:
            raise DataError(
                explain("the chat template drops the assistant's reply", do="use a template that renders every message")
            )
        return text[at + len(_STAND_IN) :]

    def _render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], *, generate: bool
    ) -> str:
        try:
            return self._template.render(
                messages=messages, tools=list(tools) or None, add_generation_prompt=generate, **self._settings
            )
        except TemplateError as error:
            raise DataError(
                explain("the chat template refuses the conversation", got=f"{type(error).__name__}: {error}")
            ) from error


_EXTENSIONS = ["jinja2.ext.loopcontrols"]


def load_tokenizer(folder: str | Path) -> ChatTokenizer:
    """The tokenizer of a Hugging Face model folder: ``tokenizer.json`` and its chat template.

    Raises:
        DataError: a file is missing or unreadable, there is no chat template, or no end-of-turn token.
    """
    path = Path(folder)
    if "model" not in _json(path / "tokenizer.json"):
        raise DataError(explain(f"{path} has no usable tokenizer.json", expected="a fast tokenizer"))
    tokenizer = Tokenizer.from_str((path / "tokenizer.json").read_text(encoding="utf-8"))
    settings = _json(path / "tokenizer_config.json")
    template = _template_of(path, settings)
    specials = {
        name: value["content"] if isinstance(value, dict) else value
        for name, value in settings.items()
        if name.endswith("_token") and value
    }
    return ChatTokenizer(tokenizer, template, specials, _stops(path, tokenizer, specials))


def _template_of(path: Path, settings: Mapping[str, Any]) -> str:
    file = path / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):  # several by name
        template = {entry["name"]: entry["template"] for entry in template}.get("default")
    if not isinstance(template, str):
        raise DataError(
            explain(f"{path} has no chat template", expected="chat_template.jinja", do="use an instruction-tuned model")
        )
    return template


def _stops(path: Path, tokenizer: Tokenizer, specials: Mapping[str, str]) -> list[int]:
    """The tokenizer's eos first, then those of the generation config."""
    found = [tokenizer.token_to_id(specials["eos_token"])] if "eos_token" in specials else []
    more = _json(path / "generation_config.json").get("eos_token_id", [])
    found += more if isinstance(more, list) else [more]
    stops = list(dict.fromkeys(int(stop) for stop in found if stop is not None))
    if not stops:
        raise DataError(explain(f"{path} names no eos_token", expected="eos_token in tokenizer_config.json"))
    return stops


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(explain(f"{path} is not JSON", got=str(error))) from error


def _plain(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def _raise(message: str) -> None:
    raise TemplateError(message)


def _now(form: str) -> str:
    return datetime.now().astimezone().strftime(form)


def _tojson(value: Any, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=options.get("indent"))
