from typing import Any

import pytest

from memories.differences import MAX_COMPARED_CHARS, Piece, differences, word_pieces


def snapshot(**changes: Any) -> dict[str, Any]:
    return {"body": "b", "kind": "fact", "importance": 5, "status": "active", "category_id": 1} | changes


@pytest.mark.parametrize(
    ("before", "after"), [(None, snapshot()), (snapshot(), None), (snapshot(), snapshot())]
)
def test_nothing_is_different_where_one_side_is_missing_or_both_agree(
    before: dict[str, Any] | None, after: dict[str, Any] | None
) -> None:
    assert differences(before, after) == []


def test_categories_have_the_names_that_the_reader_may_know() -> None:
    [known] = differences(snapshot(), snapshot(category_id=None), categories={1: "Home"})
    [unknown] = differences(snapshot(category_id=7), snapshot(category_id=None), categories={1: "Home"})

    assert [piece.text for piece in known.pieces] == ["Home", " ", "none"]
    assert unknown.pieces[0].text == "another category"


def test_words_that_stayed_are_told_from_those_that_changed() -> None:
    assert word_pieces("a b  c", "a x  c d") == [
        Piece("same", "a "),
        Piece("removed", "b"),
        Piece("added", "x"),
        Piece("same", "  c"),
        Piece("added", " d"),
    ]


def test_long_texts_are_shown_whole() -> None:
    old, new = "a " * MAX_COMPARED_CHARS, "b"

    assert word_pieces(old, new) == [Piece("removed", old), Piece("same", "\n"), Piece("added", new)]
