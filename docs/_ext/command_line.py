"""The page of the command line, made from the commands themselves while the site is built."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from public_names import escaped
from rich.text import Text
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typer.main import get_command

EXAMPLE = re.compile(r"([^:]+): ((?:obverse|torchrun) .+?)")


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command with its full name, a group before its members."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield from commands(inner, f"{path} {name}")


def plain(text: str) -> str:
    """Help without the marks of colours and of line breaks."""
    return Text.from_markup(text).plain


def help_lines(text: str | None) -> list[str]:
    """Help as Markdown: paragraphs; what is kept line by line (after a \\b, or indented) as a block."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", plain(text or "").strip("\n").partition("\f")[0]):
        rows = [row for row in block.splitlines() if row.strip() != "\b"]
        if not rows:
            continue
        kept = len(rows) < len(block.splitlines())
        example = EXAMPLE.fullmatch(" ".join(row.strip() for row in rows))
        if example and not kept:
            lines += [f"{escaped(example[1])}:", "", "````text", example[2], "````", ""]
            continue
        commands_only = all(row.startswith((" ", "$", "obverse ")) for row in rows)
        if kept or commands_only:
            lines += ["````text", *(row.rstrip() for row in rows), "````", ""]
        else:
            lines += [*(escaped(row.strip()) for row in rows), ""]
    return lines


def told(parameter: Any, context: Any) -> tuple[str, str]:
    """How it is written on the line, and what it is for."""
    record = parameter.get_help_record(context)
    written, said = record if record else (parameter.make_metavar(context), parameter.help or "")
    said = " ".join(plain(said).split())
    if parameter.is_flag if hasattr(parameter, "is_flag") else False:
        # typer's own help adds this to flags that are on unless switched off
        said += " [on]" if parameter.default is True else ""
    return plain(written), said


def parameter_lines(command: Any, context: Any) -> list[str]:
    """Arguments and options, in the groups that the help has."""
    groups: dict[str, list[str]] = {}
    for parameter in command.get_params(context):
        if getattr(parameter, "hidden", False):
            continue
        kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
        group = getattr(parameter, "rich_help_panel", None) or kind
        written, said = told(parameter, context)
        groups.setdefault(group, []).extend([f"`{written}`", f": {escaped(said) or '–'}", ""])
    return [line for group, lines in groups.items() for line in (f"**{group}**", "", *lines)]


class CommandLine(SphinxDirective):
    """`{command-line}`: a section a command, with its usage, help, arguments and options."""

    def run(self) -> list[nodes.Node]:
        from obverse.app.main import app

        self.env.note_dependency(__file__)
        for name, module in list(sys.modules.items()):
            if name.startswith("obverse.app") and getattr(module, "__file__", None):
                self.env.note_dependency(module.__file__)
        sections: list[nodes.Node] = []
        for path, command in commands(get_command(app), "obverse"):
            context = command.context_class(command, info_name=path)
            section = nodes.section(ids=[path.replace(" ", "-")], names=[path])
            section += nodes.title(path, path)
            usage = " ".join([path, *command.collect_usage_pieces(context)])
            lines = ["````text", usage, "````", "", *help_lines(command.help)]
            inner = getattr(command, "commands", {})
            if inner:
                for name, one in inner.items():
                    said = plain(one.get_short_help_str(200))
                    lines += [f"- [`{path} {name}`](#{path.replace(' ', '-')}-{name}): {escaped(said)}"]
                lines += [""]
            lines += parameter_lines(command, context)
            lines += help_lines(command.epilog)
            self.state.nested_parse(StringList(lines, source=f"help of {path}"), 0, section)
            self.state.document.note_implicit_target(section, section)
            sections.append(section)
        return sections


class ExitCodes(SphinxDirective):
    """`{exit-codes}`: what the program says of them, below its help or at the head of its code."""

    def run(self) -> list[nodes.Node]:
        from obverse.app import main

        said = " ".join(f"{main.app.info.epilog or ''}\n{main.__doc__}".split()).partition("Exit codes: ")[2]
        codes = re.findall(r"(\d+) (.+?)(?=; \d|\.(?: |$))", said.partition(" Exit codes: ")[0])
        if not codes:
            raise self.error(f"expected 'Exit codes: 0 done; 2 …' in {main.__file__}; got none")
        rows = [line for code, meaning in codes for line in (f"`{code}`", f": {escaped(meaning)}", "")]
        container = nodes.container()
        self.state.nested_parse(StringList(rows, source=main.__file__ or ""), 0, container)
        return list(container.children)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("command-line", CommandLine)
    app.add_directive("exit-codes", ExitCodes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
