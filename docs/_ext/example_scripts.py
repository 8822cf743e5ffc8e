"""The scripts of examples/ as a page: the question that each answers, and its code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from public_names import escaped
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

PAGE = "examples"
LINK = re.compile(r"\[([^\]]+)\]\(\.\./examples(?:/|/README\.md|/(\w+)\.py)?\)")


def relink(app: Sphinx, name: str, source: list[str]) -> None:
    """`../examples/x.py` is `examples.html#x` on the site, `../examples` the page as a whole."""

    def link(match: re.Match[str]) -> str:
        text, script = match.groups()
        address = "../" * name.count("/") + f"{PAGE}.html"
        address += f"#{script.replace('_', '-')}" if script else ""
        return f'<a class="reference internal" href="{address}">{text}</a>'

    source[0] = LINK.sub(link, source[0])


class ExampleScripts(SphinxDirective):
    """`{example-scripts}`: a section a script, its docstring's first sentence the title."""

    def run(self) -> list[nodes.Node]:
        sections: list[nodes.Node] = []
        self.env.note_dependency(__file__)
        for script in sorted((Path(self.env.srcdir).parent / "examples").glob("*.py")):
            self.env.note_dependency(str(script))
            text = script.read_text(encoding="utf-8")
            title, _, more = (ast.get_docstring(ast.parse(text)) or script.name).partition("\n\n")
            code = text.partition('"""\n')[2].strip("\n")
            section = nodes.section(ids=[script.stem.replace("_", "-")], names=[script.stem])
            section += nodes.title("", " ".join(title.split()))
            run = [line for line in more.splitlines() if line.startswith("python ")]
            said = [escaped(line) for line in more.splitlines() if line not in run]
            lines = ["````bash", *(run or [f"python examples/{script.name}"]), "````", "", *said, ""]
            lines += ["````python", *code.splitlines(), "````"]
            self.state.nested_parse(StringList(lines, source=str(script)), 0, section)
            self.state.document.note_implicit_target(section, section)
            sections.append(section)
        return sections


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", relink)
    app.add_directive("example-scripts", ExampleScripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
