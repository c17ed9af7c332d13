"""From a validation error to lines a person can act on: where, what, and the nearest valid name."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

__all__ = ["known_keys", "nearest", "readable"]

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a block of settings",
    "model_type": "a block of settings",
    "model_attributes_type": "a block of settings",
    "missing": "a value",
}


def readable(error: ValidationError, *, model: type[BaseModel], source: str, commanded: frozenset[str]) -> str:
    """One line for each thing that is wrong, with the place it was written and what would be right."""
    lines: list[str] = []
    for detail in error.errors(include_url=False):
        line = _line(dict(detail), model)
        key = _key(detail["loc"], model)
        lines.append(f"{line} (set on the command line)" if key in commanded else line)
    if len(lines) == 1:
        return f"{source}: {lines[0]}"
    return f"{source}: {len(lines)} settings are wrong" + "".join(f"\n  - {line}" for line in lines)


def nearest(name: str, known: Sequence[str]) -> str | None:
    """``did you mean 'x'?``, or None when nothing is close.

    >>> nearest("stepps", ["steps", "seed"])
    "did you mean 'steps'?"
    """
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean {found[0]!r}?" if found else None


def known_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every dotted key a model accepts, those of every member of a union included."""
    for name, info in model.model_fields.items():
        if info.exclude:  # a field that no recipe may set
            continue
        yield f"{prefix}{name}"
        for inner in _models(info.annotation):
            yield from known_keys(inner, f"{prefix}{name}.")


def _line(detail: dict[str, Any], model: type[BaseModel]) -> str:
    key = _key(detail["loc"], model)
    kind, got = detail["type"], detail.get("input")
    if kind == "extra_forbidden":
        return _unknown(key, model, detail["loc"])
    if kind in {"union_tag_invalid", "union_tag_not_found", "literal_error"}:
        return _wrong_choice(key, detail)
    if kind == "value_error":
        reason = str(detail["ctx"]["error"])
        return f"{key}: {reason}" if key else reason
    if kind == "missing":
        return f"{key} is not set"
    expected = _EXPECTED.get(kind) or detail["msg"].removeprefix("Input should be ")
    return f"{key}: got {got!r}; expected {expected}"


def _unknown(key: str, model: type[BaseModel], loc: Sequence[int | str]) -> str:
    """An unknown key: the nearest name in the same block, else the same name elsewhere, else the list."""
    head, _, last = key.rpartition(".")
    block = _block(model, loc[:-1])
    here = [name for name, info in block.model_fields.items() if not info.exclude] if block else []
    near = difflib.get_close_matches(last, here, n=1, cutoff=0.6)
    keys = set(known_keys(model))
    elsewhere = sorted(known for known in keys if known.rpartition(".")[2] == last)
    if key in keys:  # a setting of another member of the union
        advice = f"{head} of another kind has it: {', '.join(_owners(model, loc))}"
    elif near:
        advice = f"did you mean {'.'.join(filter(None, (head, near[0])))!r}?"
    elif elsewhere:
        advice = f"did you mean {' or '.join(map(repr, elsewhere[:3]))}?"
    else:
        far = nearest(key, sorted(keys))
        advice = far or f"known here: {', '.join(here)}"
    return f"unknown key {key!r}; {advice}"


def _owners(model: type[BaseModel], loc: Sequence[int | str]) -> list[str]:
    """``field=kind`` for the members of the innermost union around ``loc`` that do have its last key."""
    keys = [(key, block) for key, block in _walk(loc[:-1], model) if block is not None]
    name, outer = keys[-1]
    members = _models(outer.model_fields[name].annotation)
    return [f"{name}={get_args(m.model_fields['name'].annotation)[0]}" for m in members if loc[-1] in m.model_fields]


def _wrong_choice(key: str, detail: dict[str, Any]) -> str:
    context = detail.get("ctx", {})
    expected = context.get("expected_tags") or context.get("expected") or "a name"
    if detail["type"] == "union_tag_not_found":
        return f"{key}.name is not set"
    got = context.get("tag", detail.get("input"))
    names = [name.strip().strip("'") for name in str(expected).replace(" or ", ", ").split(",")]
    field = f"{key}.name" if detail["type"] == "union_tag_invalid" else key
    near = nearest(str(got), names)
    return f"{field}: got {got!r}; expected one of {', '.join(names)}" + (f"; {near}" if near else "")


def _key(loc: Sequence[int | str], model: type[BaseModel]) -> str:
    """The dotted key of a location."""
    return ".".join(key for key, _ in _walk(loc, model))


def _block(model: type[BaseModel], loc: Sequence[int | str]) -> type[BaseModel] | None:
    """The model at a location, the right member of a union."""
    block: type[BaseModel] | None = model
    for key, holder in _walk(loc, model):
        block, _ = _inside(holder, key, loc[-1])
    return block


def _walk(loc: Sequence[int | str], model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel] | None]]:
    """The keys of a location, each with the block that holds it. Tags of unions, which are no keys, are left out."""
    block: type[BaseModel] | None = model
    tagged = False
    for index, place in enumerate(loc):
        if tagged or "[" in str(place):  # the second: a member of a union of plain types
            tagged = False
            continue
        yield str(place), block
        block, tagged = _inside(block, place, loc[index + 1] if index + 1 < len(loc) else None)


def _inside(
    block: type[BaseModel] | None, key: int | str, after: int | str | None
) -> tuple[type[BaseModel] | None, bool]:
    """The model behind one field, and whether ``after`` is the tag that chose it from a union."""
    info = block.model_fields.get(str(key)) if block else None
    members = list(_models(info.annotation)) if info else []
    chosen = [member for member in members if len(members) > 1 and after is not None and _tag_of(member, after)]
    return (chosen or members or [None])[0], bool(chosen)


def _tag_of(model: type[BaseModel], tag: int | str) -> bool:
    info = model.model_fields.get("name")
    return info is not None and tag in get_args(info.annotation)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Pydantic models inside an annotation: bare, optional, or members of a union."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is not None:
        for member in get_args(annotation):
            if member is not NoneType:
                yield from _models(member)
