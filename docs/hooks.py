"""What the site has besides the pages of docs/: the root's pages, sources that pages link to, and a list of modules.

The Markdown stays as a code host shows it: links lead to files of the repository. Here a link to one that is not in
docs/ becomes a link to a page of the site that shows it, so that the site is complete without a network.
"""

import ast
import os
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
AT_ROOT = ("ARCHITECTURE.md", "CONTRIBUTING.md")
"""Pages of the site that stand at the repository's root."""

LISTED = "internals/files.md"
"""The page that lists all modules."""
ROOMS = ("frontend", "ir", "language", "analysis", "transform", "codegen", "host", "runtime", "pytorch")
"""The rooms that an operator goes through, in their order; the others are listed after them."""
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"^ *(```|~~~)")
FETCHED = re.compile(r"""<(?:(?:script|img|iframe)\b[^>]*\bsrc|link\b[^>]*\bhref)=["']?(?:https?:)?//[^>]*>""")
"""What makes a browser ask another host."""
SHOWN = {".py": "python", ".cu": "cpp", ".ll": "llvm", ".toml": "toml", ".txt": "text", ".yml": "yaml", "": "text"}
"""Kinds of files that a page shows, by their ending; others are copied as they are."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Write out the entries of the navigation that name a folder."""
    config.nav = [_listed(entry) for entry in config.nav or []]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root and those of all sources that some page links to."""
    for name in AT_ROOT:
        files.append(File.generated(config, name, content=(ROOT / name).read_text(encoding="utf-8")))
    files.append(File.generated(config, LISTED, content=_all_modules()))
    wanted = {ROOT / "LICENSE"}
    for file in files.documentation_pages():
        wanted |= {target for target in _targets(file) if not _in_docs(target)}
    for target in sorted(wanted):
        for file in _sources(target, config):
            if file.src_uri not in files.src_uris:
                files.append(file)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where the site has what they mean; the landing page's own text stands within the README's."""
    text = _led(markdown, _place(page.file), page.file.src_uri)
    if page.file.src_uri != "index.md":
        return text
    page.meta["hide"] = ["navigation"]
    readme = _led((ROOT / "README.md").read_text(encoding="utf-8"), ROOT / "README.md", "index.md")
    before, measured, after = readme.partition("\n## More\n")[0].partition("\n## Measured\n")
    return before + text.partition("\n")[2] + measured + after


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that would fetch something from another host."""
    found = FETCHED.search(output)
    if found:
        raise PluginError(f"{page.file.src_uri} fetches from another host: {found[0]}")
    return output


def _listed(entry: object) -> object:
    """Replace `Title: folder/` by the pages in the folder, the index first."""
    if not isinstance(entry, dict):
        return entry
    ((title, value),) = entry.items()
    if isinstance(value, list):
        return {title: [_listed(each) for each in value]}
    if not value.endswith("/"):
        return entry
    pages = sorted((ROOT / "docs" / value).glob("*.md"), key=lambda path: (path.name != "index.md", path.name))
    return {title: [f"{value}{path.name}" for path in pages]}


def _place(file: File) -> Path:
    """Return where in the repository a page's text stands."""
    if file.src_uri in AT_ROOT:
        return ROOT / file.src_uri
    return ROOT / "docs" / file.src_uri


def _in_docs(path: Path) -> bool:
    return path.is_relative_to(ROOT / "docs")


def _targets(file: File) -> set[Path]:
    """Return the files and folders of the repository that a page links to."""
    source = _place(file)
    texts = [(source, source.read_text(encoding="utf-8"))] if source.exists() else []
    if file.src_uri == "index.md":
        texts.append((ROOT / "README.md", (ROOT / "README.md").read_text(encoding="utf-8")))
    found = ((place.parent / match[2]).resolve() for place, text in texts for match in LINK.finditer(text))
    return {path for path in found if path.exists() and path.is_relative_to(ROOT)} - {ROOT / "README.md"}


def _sources(target: Path, config: MkDocsConfig) -> list[File]:
    """Return the pages that show a file, or a folder and all that is in it."""
    name = _page_of(target)
    if target.is_dir():
        inside = [path for path in sorted(target.iterdir()) if path.suffix in SHOWN and path.name[0] not in "._"]
        lines = [f"- [{path.name}]({_from(name, _page_of(path))})" for path in inside]
        text = f"# {target.relative_to(ROOT).as_posix()}\n\n" + "\n".join(lines)
        return [_generated(config, name, text), *(file for path in inside for file in _sources(path, config))]
    if target.relative_to(ROOT).as_posix() in AT_ROOT:
        return []
    if target.suffix not in SHOWN:
        return [File.generated(config, name, abs_src_path=str(target), inclusion=InclusionLevel.NOT_IN_NAV)]
    listing = target.read_text(encoding="utf-8").replace("````", "'''")
    text = f"# {target.relative_to(ROOT).as_posix()}\n\n````{SHOWN[target.suffix]}\n{listing}\n````\n"
    return [_generated(config, name, text)]


def _all_modules() -> str:
    """Return the page that lists all modules of brickwork, room by room, each with the sentence that it begins with."""
    source = ROOT / "src" / "brickwork"
    rooms = {path.name: path for path in sorted(source.iterdir()) if (path / "__init__.py").exists()}
    lines = [
        "# All files",
        "",
        "What each module says of itself; the rooms that an operator goes through come first.",
        "",
    ]
    lines += ["## brickwork", "", *_table_of(source, sorted(source.glob("*.py")))]
    for name in (*ROOMS, *(name for name in rooms if name not in ROOMS)):
        lines += _room(rooms[name], "##", name)
    return "\n".join(lines)


def _room(folder: Path, mark: str, name: str) -> list[str]:
    """Return the section about a folder of modules, with those about the folders in it."""
    lines = [f"{mark} {name}", "", _said(folder / "__init__.py"), "", *_table_of(folder, sorted(folder.glob("*.py")))]
    for inner in sorted(path.parent for path in folder.glob("*/__init__.py")):
        lines += _room(inner, f"{mark}#", f"{name}/{inner.name}")
    return lines


def _table_of(folder: Path, modules: list[Path]) -> list[str]:
    rows = [path for path in modules if path != folder / "__init__.py"]
    listed = [f"| `{path.relative_to(folder).as_posix()}` | {_said(path)} |" for path in rows]
    return ["| file | what lives there |", "|---|---|", *listed, ""]


def _said(module: Path) -> str:
    """Return the first sentences of a module's docstring, on one line."""
    said = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    return " ".join(said.partition("\n\n")[0].split())


def _generated(config: MkDocsConfig, name: str, text: str) -> File:
    return File.generated(config, name, content=text, inclusion=InclusionLevel.NOT_IN_NAV)


def _page_of(target: Path) -> str:
    """Return the site's path of a file of the repository."""
    name = target.relative_to(ROOT).as_posix()
    if _in_docs(target):
        return target.relative_to(ROOT / "docs").as_posix()
    if name in AT_ROOT:
        return name
    if name == "README.md":
        return "index.md"
    if target.is_dir():
        return f"source/{name}/index.md"
    return f"source/{name}.md" if target.suffix in SHOWN else f"source/{name}"


def _from(here: str, there: str) -> str:
    return PurePosixPath(os.path.relpath(there, PurePosixPath(here).parent)).as_posix()


def _led(markdown: str, source: Path, here: str) -> str:
    """Return a text whose links lead from one page of the site to others."""

    def led(match: re.Match[str]) -> str:
        target = (source.parent / match[2]).resolve()
        if "://" in match[2] or not target.is_relative_to(ROOT) or not target.exists():
            return match[0]
        return f"{match[1]}{_from(here, _page_of(target))}{match[3]}"

    lines, fenced = [], False
    for line in markdown.split("\n"):
        fenced ^= bool(FENCE.match(line))
        lines.append(line if fenced else LINK.sub(led, line))
    return "\n".join(lines)
