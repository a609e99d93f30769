"""The help: the files of docs/ as articles, rendered, and cut at their headings into sections."""

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.templatetags.static import static
from django.utils.text import slugify
from markdown_it import MarkdownIt
from markdown_it.token import Token

# In the order of the help's first page; what is not named here comes after it, the decisions last.
ORDER = ("start", "recall", "retention", "embeddings", "api", "operations", "architecture")
IMAGES = "help/"  # the prefix that docs/img has among the static files
PATH = "/help/"


@dataclass(frozen=True)
class Section:
    """What stands under one heading."""

    slug: str  # of its article
    anchor: str  # empty for what stands above the first heading below the title
    title: str
    text: str  # without marks, one line per block

    @property
    def url(self) -> str:
        return f"{PATH}{self.slug}" + (f"#{self.anchor}" if self.anchor else "")


@dataclass(frozen=True)
class Article:
    slug: str  # its path below docs/, without the ending
    title: str
    html: str
    sections: tuple[Section, ...]

    @property
    def is_decision(self) -> bool:
        return self.slug.startswith("adr/")

    @property
    def summary(self) -> str:
        return next((one.text.partition("\n")[0] for one in self.sections if one.text), "")


@cache
def articles() -> dict[str, Article]:
    """Return every article by its slug, in the order in which they are listed."""
    docs = Path(settings.BASE_DIR) / "docs"
    slugs = [path.relative_to(docs).with_suffix("").as_posix() for path in docs.rglob("*.md")]
    slugs.sort(key=place)
    return {slug: article(slug, (docs / f"{slug}.md").read_text("utf-8")) for slug in slugs}


def place(slug: str) -> tuple[bool, int, str]:
    return "/" in slug, ORDER.index(slug) if slug in ORDER else len(ORDER), slug


def article(slug: str, source: str) -> Article:
    """Render one file. Marks of HTML in it are shown, never obeyed."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(source)
    title = text_of(tokens[1]) if tokens and tokens[0].tag == "h1" else slug
    sections = tuple(cut(slug, title, tokens))
    for token in tokens:
        if token.type == "table_open":
            token.attrSet("tabindex", "0")  # on a phone it scrolls, also by keyboard
        for child in token.children or ():
            resolve(child, slug)
    return Article(slug, title, markdown.renderer.render(tokens, markdown.options, {}), sections)


def cut(slug: str, title: str, tokens: Sequence[Token]) -> Iterator[Section]:
    """Yield the sections, and give each heading its anchor."""
    anchor, heading, lines = "", title, list[str]()
    for at, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag != "h1":
            yield Section(slug, anchor, heading, "\n".join(lines))
            heading, lines = text_of(tokens[at + 1]), []
            anchor = slugify(heading)
            token.attrSet("id", anchor)
        elif token.type in ("inline", "fence", "code_block") and tokens[at - 1].type != "heading_open":
            lines.append(text_of(token))
    yield Section(slug, anchor, heading, "\n".join(lines))


def text_of(token: Token) -> str:
    if token.children is None:
        return token.content.strip()
    return "".join(" " if child.type == "softbreak" else child.content for child in token.children)


def resolve(token: Token, slug: str) -> None:
    """Lead links between files to their pages, and images to the static files."""
    folder = posixpath.dirname(slug)
    if token.type == "link_open":
        token.attrSet("href", address(str(token.attrGet("href")), folder))
    elif token.type == "image":
        source = posixpath.normpath(posixpath.join(folder, str(token.attrGet("src"))))
        token.attrSet("src", static(IMAGES + posixpath.basename(source)))


def address(href: str, folder: str) -> str:
    parts = urlsplit(href)
    if href == "adr":
        return "/help#decisions"
    if parts.scheme or not parts.path.endswith(".md"):
        return href
    target = posixpath.normpath(posixpath.join(folder, parts.path.removesuffix(".md")))
    return f"{PATH}{target}" + (f"#{parts.fragment}" if parts.fragment else "")
