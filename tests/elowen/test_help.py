"""The help that is made of docs/: every link leads somewhere, nothing in it is obeyed."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from elowen.help import article, articles
from elowen.sitemap import PAGES, Page
from memories.models import Account

OTHER = re.compile(r"<|^(api|admin)/(?!docs$)")
ATTRIBUTE = re.compile(r'(?:href|src)="([^"]*)"')


def test_every_file_of_the_documentation_is_an_article_with_a_title() -> None:
    files = {
        path.relative_to(Path(settings.BASE_DIR) / "docs").with_suffix("").as_posix()
        for path in (Path(settings.BASE_DIR) / "docs").rglob("*.md")
    }

    assert set(articles()) == files
    assert all(one.title != slug and one.summary for slug, one in articles().items())


def test_every_link_between_articles_leads_to_one_and_every_anchor_is_there() -> None:
    anchors = {slug: {one.anchor for one in found.sections} for slug, found in articles().items()}
    for slug, found in articles().items():
        for target in ATTRIBUTE.findall(found.html):
            if target.startswith("/help/"):
                path, _, anchor = target.removeprefix("/help/").partition("#")
                assert path in anchors, (slug, target)
                assert anchor in anchors[path] | {""}, (slug, target)
            else:
                assert target.startswith(("https://", "/api/", "/static/", "#", "/help#decisions")), (
                    slug,
                    target,
                )


def test_every_picture_is_among_the_static_files() -> None:
    pictures = [
        target
        for found in articles().values()
        for target in ATTRIBUTE.findall(found.html)
        if target.startswith("/static/")
    ]

    assert pictures
    assert all(finders.find(target.removeprefix("/static/")) for target in pictures)


def test_anchors_of_an_article_differ() -> None:
    for slug, found in articles().items():
        anchors = [one.anchor for one in found.sections]
        assert len(anchors) == len(set(anchors)), slug


def test_marks_of_html_are_shown_and_scripts_lead_nowhere() -> None:
    found = article("x", "# T\n\n<script>alert(1)</script> [a](javascript:alert(1)) ![b](javascript:x)")

    assert "<script" not in found.html
    assert 'href="javascript' not in found.html
    assert 'src="javascript' not in found.html


def test_sections_hold_what_stands_under_their_heading() -> None:
    below = "Text\nof two lines with `code`.\n\n    block\n\n- item\n"
    found = article("a/b", f"# Title\n\nAbove *all*.\n\n## First one\n\n{below}")

    assert [(one.anchor, one.title, one.text) for one in found.sections] == [
        ("", "Title", "Above all."),
        ("first-one", "First one", "Text of two lines with code.\nblock\nitem"),
    ]
    assert [one.url for one in found.sections] == ["/help/a/b", "/help/a/b#first-one"]
    assert '<h2 id="first-one">' in found.html


def pages() -> Iterator[str]:
    """Yield the full name of every path that takes no argument and is no part of the administration."""

    def walk(resolver: URLResolver, spaces: tuple[str, ...], prefix: str) -> Iterator[str]:
        for one in resolver.url_patterns:
            path = prefix + str(one.pattern)
            if isinstance(one, URLResolver):
                inner = (*spaces, one.namespace) if one.namespace else spaces
                yield from walk(one, inner, path)
            elif isinstance(one, URLPattern) and one.name and not OTHER.search(path):
                yield ":".join((*spaces, one.name))

    yield from walk(get_resolver(), (), "")


def test_every_page_that_can_be_gone_to_is_in_the_sitemap() -> None:
    of_settings = {f"embeddings-pages:{name}" for name in ("index", "reindex", "openrouter")}
    no_destination = {"sign-in", "sign-out", "home", "memories:retention-curves"}

    assert set(pages()) - {page.route for page in PAGES} == no_destination | of_settings


@pytest.mark.django_db
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.route)
def test_every_page_of_the_sitemap_opens_for_whom_it_says(page: Page, client: Client, ada: Account) -> None:
    client.force_login(ada)
    member = client.get(page.url).status_code
    ada.is_staff = ada.is_superuser = True
    ada.save()

    assert client.get(page.url).status_code == 200
    assert (member == 200) is not page.staff_only


@pytest.mark.django_db
def test_the_help_is_for_whoever_is_signed_in(client: Client, ada: Account) -> None:
    paths = ("/help", "/help/recall", "/help/adr/0001-one-command-bootstrap")
    assert [client.get(path).status_code for path in paths] == [302, 302, 302]
    client.force_login(ada)

    assert [client.get(path).status_code for path in paths] == [200, 200, 200]
    for path in ("/help/nowhere", "/help/../settings", "/help/%2e%2e/README", "/help/"):
        assert client.get(path).status_code == 404, path
