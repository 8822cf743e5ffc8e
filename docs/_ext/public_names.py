"""The API reference: every public name with its signature and docstring, read while the site is built.

The docstrings are plain text with `code` in backticks, indented examples and an `Args:` list: Markdown
but for a few marks, which are escaped here.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

LIST = re.compile(r"(?P<head>Args|Arguments|Returns|Raises|Attributes|Fields|Yields):$")
ITEM = re.compile(r"(?P<name>[*\w][\w*, /.]*): (?P<text>.*)")


def escaped(text: str) -> str:
    """Text in which nothing but `code` is a mark of Markdown."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([\\*_\[\]<>$|#~^{}`])", r"\\\1", part) for part in parts
    )


def paragraphs(text: str) -> Iterator[list[str]]:
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def fenced(block: list[str]) -> list[str]:
    code = textwrap.dedent("\n".join(block)).splitlines()
    return ["````python" if not code[0].startswith(">>>") else "````pycon", *code, "````"]


def items(block: list[str]) -> list[str]:
    """`name: text` lines, continued by deeper indents, as a list."""
    lines: list[str] = []
    for line in textwrap.dedent("\n".join(block)).splitlines():
        found = ITEM.fullmatch(line)
        if found:
            lines.append(f"- `{found['name']}`: {escaped(found['text'])}")
        elif line.startswith(" ") and lines:
            lines.append(f"  {escaped(line.strip())}")
        else:
            lines += [f"- {escaped(line)}"]
    return lines


def markdown(docstring: str) -> list[str]:
    """A docstring of the project's plain kind as Markdown."""
    lines: list[str] = []
    for block in paragraphs(inspect.cleandoc(docstring)):
        head = LIST.fullmatch(block[0])
        if head and len(block) > 1:
            lines += [f"**{head['head']}**", "", *items(block[1:])]
        elif block[0].startswith((">>>", "    ")):
            lines += fenced(block)
        else:
            for line in block:
                bullet = re.match(r"\s*- ", line)
                start = bullet.group() if bullet else "  " if line.startswith("  ") else ""
                safe = escaped(line[len(start) :])
                # a line that would start a list, a heading or a rule
                lines.append(start + re.sub(r"^([-+=]|\d+[.)])", r"\\\1", safe))
        lines.append("")
    return lines


def value(default: Any) -> str:
    if callable(default) and hasattr(default, "__name__"):
        return str(default.__name__)
    text = repr(default)
    return "…" if "<" in text and " at 0x" in text else text


def signature(thing: Callable[..., Any], method: bool = False) -> str:
    """As it is written, annotations included; "" where Python does not know it."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    parts, star = [], False
    kinds = inspect.Parameter
    for one in list(found.parameters.values())[1 if method else 0 :]:
        if one.kind is kinds.KEYWORD_ONLY and not star:
            parts, star = [*parts, "*"], True
        prefix = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(one.kind, "")
        star = star or bool(prefix)
        text = prefix + one.name
        if one.annotation is not kinds.empty:
            text += f": {annotation(one.annotation)}"
        if one.default is not kinds.empty:
            text += (" = " if ":" in text else "=") + value(one.default)
        parts.append(text)
    returned = found.return_annotation
    ending = "" if returned is found.empty else f" -> {annotation(returned)}"
    return f"({', '.join(parts)}){ending}"


def annotation(said: Any) -> str:
    text = said if isinstance(said, str) else inspect.formatannotation(said)
    return text.strip("'\"") if re.fullmatch(r"""(['"])[^'"]*\1""", text) else text


def own(thing: type, name: str) -> bool:
    """Whether the class says it itself, or gets it from a class of this project."""
    maker = next((base for base in thing.__mro__ if name in vars(base)), object)
    return maker.__module__.startswith("obverse")


def indent(lines: list[str]) -> list[str]:
    return [f"  {line}".rstrip() for line in lines]


def directive(kind: str, what: str, body: list[str], depth: int, options: dict[str, str]) -> list[str]:
    fence = ":" * (8 - depth)
    head = [f"{fence}{{py:{kind}}} {what}", *(f":{key}: {text}" for key, text in options.items()), ""]
    return [*head, *body, fence, ""]


def remarks(thing: type) -> dict[str, str]:
    """What the code says of each field, in the comment behind it."""
    return dict(re.findall(r"^    (\w+): [^#\n]*?  # (.+)$", inspect.getsource(thing), re.MULTILINE))


def members(thing: type, about: dict[str, str], shown: str) -> list[str]:
    lines: list[str] = []
    fields = dataclasses.fields(thing) if dataclasses.is_dataclass(thing) else ()
    said = remarks(thing)
    for field in fields:
        if not field.name.startswith("_"):
            options = {**about, "type": annotation(field.type)}
            text = [escaped(said[field.name])] if field.name in said else []
            lines += directive("attribute", f"{shown}.{field.name}", text, 1, options)
    for name in vars(thing) if not issubclass(thing, tuple) else ():
        if name.startswith("_") or not own(thing, name) or name in {field.name for field in fields}:
            continue
        raw = inspect.getattr_static(thing, name)
        text = markdown(inspect.getdoc(raw) or "") if getattr(raw, "__doc__", None) else []
        if isinstance(raw, property):
            kind = annotation(inspect.signature(raw.fget).return_annotation) if raw.fget else ""
            lines += directive("property", f"{shown}.{name}", text, 1, {**about, "type": kind})
        elif isinstance(raw, classmethod | staticmethod):
            call = signature(raw.__func__, method=isinstance(raw, classmethod))
            kind = type(raw).__name__
            lines += directive("method", f"{shown}.{name}{call}", text, 1, {**about, kind: ""})
        elif inspect.isfunction(raw):
            lines += directive("method", f"{shown}.{name}{signature(raw, True)}", text, 1, about)
    return lines


def described(name: str, module: ModuleType, home: str | None) -> list[str]:
    """One public name, whole. `home` is the package that links lead to, where that is another one."""
    thing = getattr(module, name)
    options = {"module": module.__name__} | ({} if home is None else {"no-index": ""})
    if inspect.isclass(thing):
        documented = thing.__doc__ or ""
        made = documented.startswith(f"{name}(")  # a dataclass without a docstring: its signature again
        body = [] if made else markdown(documented)
        kind = "exception" if issubclass(thing, BaseException) else "class"
        call = "" if kind == "exception" else signature(thing).partition(" ->")[0]
        return directive(kind, name + call, [*body, *members(thing, options, name)], 0, options)
    if callable(thing) and inspect.isroutine(thing):
        return directive("function", name + signature(thing), markdown(thing.__doc__ or ""), 0, options)
    # a type by another name, or a constant
    text = inspect.formatannotation(thing).replace("`", "'") if not isinstance(thing, tuple) else repr(thing)
    return directive("data", name, [f"`{text}`"], 0, options)


def homes(packages: list[str]) -> dict[int, str]:
    """By identity of the object: the package that describes it, the innermost one that names it."""
    found: dict[int, str] = {}
    for package in packages:
        module = import_module(package)
        for name in module.__all__:
            found.setdefault(id(getattr(module, name)), package)
    return found


class PublicNames(SphinxDirective):
    """`{public-names} obverse.shadow`: what the package exports, in the order of its `__all__`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = import_module(self.arguments[0])
        makers = {getattr(getattr(module, name), "__module__", "") for name in module.__all__}
        for maker in (module.__name__, __name__, *makers):
            file = getattr(sys.modules.get(maker), "__file__", None)
            if file:
                self.env.note_dependency(file)
        home = homes(self.config.public_packages)
        lines = [*markdown(module.__doc__ or ""), f":::{{py:currentmodule}} {module.__name__}", ":::", ""]
        for name in module.__all__:
            there = home.get(id(getattr(module, name)), module.__name__)
            if there == module.__name__:
                lines += described(name, module, None)
            else:  # the types of its signature are those of the package that it comes from
                lines += [f":::{{py:currentmodule}} {there}", ":::", "", *described(name, module, there)]
                lines += [f":::{{py:currentmodule}} {module.__name__}", ":::", ""]
        container = nodes.container()
        self.state.nested_parse(StringList(lines, source=module.__file__ or ""), 0, container)
        for one in container.findall(addnodes.desc_signature):
            if not one["ids"]:  # described here and indexed elsewhere: a place to link to all the same
                one["ids"].append(f"{module.__name__}.{one['fullname']}")
        return list(container.children)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("public_packages", [], "env", types=(list,))
    app.add_directive("public-names", PublicNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
