"""S2: which project a directory belongs to, with paths that mean no good among them."""

import posixpath
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embeddings.models import EmbeddingSpace
from memories.models import Account
from recall.directories import contains, innermost, place, real
from recall.scope import project_at
from tests.conftest import Api
from tests.factories import CategoryFactory, MemoryFactory, ProjectFactory, ProjectMemberFactory
from tests.problems import problem


@pytest.mark.parametrize(
    ("root", "path", "is_inside"),
    [
        ("/srv/kolin", "/srv/kolin", True),
        ("/srv/kolin", "/srv/kolin/", True),
        ("/srv/kolin/", "/srv/kolin", True),
        ("/srv/kolin", "/srv/kolin/src/deep", True),
        ("/srv/kolin", "/srv/kolin/..cache", True),
        ("/srv/kolin", "/srv/kolin/...", True),
        ("/srv/kolin", "/srv/kolin-old", False),
        ("/srv/kolin", "/srv/kolin/../kolin-old", False),
        ("/srv/kolin", "/srv/kolin/..", False),
        ("/srv/kolin", "/srv", False),
        ("/srv/kolin", "/srv/KOLIN", False),
        ("/srv/kolin", "//srv///kolin/./src", True),
        ("/srv/kolin", "srv/kolin", False),
        ("/srv/kolin", "", False),
        ("/srv/kolin", "/srv/kolin\0/x", False),
        ("/srv/kolin", "/srv/kolin\n", False),
        ("/srv/caf\u00e9", "/srv/cafe\u0301/src", True),
        ("/", "/anything", True),
        ("/", "C:/anything", False),
        ("", "/anything", False),
        ("relative", "relative/x", False),
        (r"C:\work\kolin", r"c:\WORK\Kolin\src", True),
        (r"C:\work\kolin", "C:/work/kolin/src", True),
        ("C:/work/kolin/", r"C:\work\kolin", True),
        (r"C:\work\kolin", r"\\?\C:\work\kolin\src", True),
        (r"C:\work\kolin", r"C:\work\kolin-old", False),
        (r"C:\work\kolin", r"C:\work\kolin\..\other", False),
        (r"C:\work\kolin", r"D:\work\kolin", False),
        (r"C:\work\kolin", r"C:work\kolin", False),
        (r"C:\work\kolin", r"\work\kolin", False),
        (r"C:\work\kolin", "/work/kolin", False),
        (r"\\server\share\kolin", r"\\SERVER\share\kolin\src", True),
        (r"\\server\share\kolin", r"\\?\UNC\server\share\kolin\src", True),
        (r"\\server\share\kolin", r"\\server\other\kolin", False),
        ("/srv/a\\b", "/srv/a\\b/c", True),
        ("/srv/a", "/srv/a\\..\\b", False),
    ],
)
def test_a_root_holds_what_is_beneath_it_and_nothing_else(root: str, path: str, is_inside: bool) -> None:
    assert contains(root, path) is is_inside


NAMES = st.lists(st.sampled_from(["a", "b", "..", ".", "", "..a", "a-b", "A"]), max_size=6)


@given(root=NAMES, path=NAMES)
def test_containment_is_what_the_relative_path_says(root: list[str], path: list[str]) -> None:
    outer, inner = "/" + "/".join(root), "/" + "/".join(path)
    # normpath keeps two leading slashes, which mean nothing special on Linux.
    relative = posixpath.relpath("/" + inner.lstrip("/"), "/" + outer.lstrip("/"))

    assert contains(outer, inner) == (relative != ".." and not relative.startswith("../"))


@given(st.text(max_size=30))
def test_any_text_is_a_place_or_none(text: str) -> None:
    found = place(text)
    assert found is None or found.is_absolute()


def test_the_longest_root_wins_and_of_equal_ones_the_first() -> None:
    roots = [(1, "/srv"), (2, "/srv/kolin"), (3, "/srv/kolin/"), (4, "/"), (5, "/srv/kolin-old")]

    assert innermost(roots, "/srv/kolin/src") == 2
    assert innermost(roots, "/srv/other") == 1
    assert innermost(roots, "/home") == 4
    assert innermost(roots[:3], "/home") is None


@pytest.mark.django_db
def test_on_this_machine_links_are_followed_and_what_is_missing_is_nowhere(
    ada: Account, tmp_path: Path
) -> None:
    (tmp_path / "kolin" / "src").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kolin")
    (tmp_path / "kolin" / "out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    project = ProjectFactory.create(root_path=str(tmp_path / "kolin"))
    ProjectMemberFactory.create(project=project, account=ada)

    def at(path: str) -> int | None:
        return project_at(ada, str(tmp_path / path), is_local=True)

    assert at("kolin/src") == at("link/src") == project.pk
    assert at("kolin/out") is at("kolin/missing") is at("circle") is at("elsewhere") is None
    assert real("a\0b") is None
    # The root may be a link itself.
    project.root_path = str(tmp_path / "link")
    project.save()
    assert at("kolin/src") == project.pk


@pytest.mark.django_db
def test_of_a_client_elsewhere_the_path_is_taken_as_written(
    api: Api, ada: Account, ben: Account, space: EmbeddingSpace
) -> None:
    inside, others = (ProjectFactory.create(root_path=r"C:\work\kolin") for _ in range(2))
    ProjectMemberFactory.create(project=inside, account=ada)
    ProjectMemberFactory.create(project=others, account=ben)
    category = CategoryFactory.create(owner=ada, project=inside)
    CategoryFactory.create(owner=ada)
    memory = MemoryFactory.create(owner=ada, category=category, body="The build needs make.")
    client = api(ada)

    def found(**asked: object) -> list[int]:
        reply = client.post("/api/memory/retrieve", {"query": "build"} | asked, format="json")
        return [one["id"] for one in reply.json()["memories"]]

    assert found(workingDirectory="c:/WORK/kolin/src") == [memory.pk]
    assert found(workingDirectory="c:/work") == found(workingDirectory="/nowhere") == []
    assert found(projectId=inside.pk, workingDirectory="/nowhere") == [memory.pk]
    refused = {"query": "build", "projectId": others.pk, "workingDirectory": r"C:\work\kolin"}
    problem(client.post("/api/memory/retrieve", refused, format="json"), 403, "projectId")
    for odd in (5, "a\0b", "x" * 5_000):
        wrong = {"query": "build", "workingDirectory": odd}
        problem(client.post("/api/memory/retrieve", wrong, format="json"), 400, "workingDirectory")
