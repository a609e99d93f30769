import pytest
from hypothesis import given
from hypothesis import strategies as st

from elowen.providers.minilm import VOCABULARY
from elowen.providers.wordpiece import WordPiece, words

# Computed once with the `tokenizers` package (0.23.3) and the same vocabulary.
REFERENCE = [
    ("", []),
    ("Ada moved to Lyon in May.", [15262, 2333, 2000, 10241, 1999, 2089, 1012]),
    (
        "The dog's name is Brownie; she's 3½ years old!",
        [
            1996,
            3899,
            1005,
            1055,
            2171,
            2003,
            2829,
            2666,
            1025,
            2016,
            1005,
            1055,
            1017,
            13714,
            2086,
            2214,
            999,
        ],
    ),
    (
        "C++ and C# cost $5.00 + 10%",
        [1039, 1009, 1009, 1998, 1039, 1001, 3465, 1002, 1019, 1012, 4002, 1009, 2184, 1003],
    ),
    ("don't re-enter user@example.com", [2123, 1005, 1056, 2128, 1011, 4607, 5310, 1030, 2742, 1012, 4012]),
    ("naïve café déjà vu ÀÉÎÖÜ", [15743, 7668, 2139, 3900, 24728, 29347, 3695, 2226]),
    ("Straße ẞ İstanbul ıı", [2358, 27807, 1096, 9960, 1104, 11722]),
    ("ΣΊΣΥΦΟΣ ΟΔΟΣ", [1173, 18199, 29733, 29735, 29736, 29730, 29733, 1169, 29722, 29730, 29733]),
    ("Привет, мир", [1194, 16856, 10325, 25529, 15290, 22919, 1010, 1191, 10325, 16856]),
    ("漢字かな交じり文", [1904, 100, 1651, 30193, 100, 1657, 30212, 1861]),
    ("서울 날씨", [1461, 30008, 29999, 30014, 30022, 1456, 30006, 30022, 29998, 30019]),
    (
        "हिन्दी ไทย עברית العربية",
        [
            1339,
            29877,
            29863,
            29861,
            29878,
            100,
            1259,
            29789,
            29811,
            29796,
            29813,
            1270,
            23673,
            29830,
            17149,
            29816,
            14498,
            19433,
        ],
    ),
    ("😀 party 🎉👩‍👧", [100, 2283, 100]),
    ("tab\tnew\nline\r\nend", [21628, 2047, 2240, 2203]),
    ("nul\x00bell\x07del\x7fsoft\xadhyphen", [16371, 20850, 5349, 9247, 6499, 6199, 10536, 8458, 2368]),
    (
        "zero\u200bwidth\xa0space\u3000wide\u2028line\x85next",
        [5717, 9148, 11927, 2232, 2686, 2898, 17517, 10288, 2102],
    ),
    ("ﬁne ﬂow ② Ⅷ ½", [1984, 2638, 1985, 5004, 100, 100, 1092]),
    ("ＦＵＬＬ ｗｉｄｔｈ", [100, 100]),
    ("—“quoted”… ‘x’ «y»", [1517, 1523, 9339, 1524, 1529, 1520, 1060, 1521, 1077, 1061, 1090]),
    (
        "a_b-c/d\\e|f~g`h^i",
        [
            1037,
            1035,
            1038,
            1011,
            1039,
            1013,
            1040,
            1032,
            1041,
            1064,
            1042,
            1066,
            1043,
            1036,
            1044,
            1034,
            1045,
        ],
    ),
    (
        "x" * 100,
        [
            22038,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
            20348,
        ],
    ),
    ("x" * 101, [100]),
    ("private\ue000use \u0378unassigned", [2797, 8557, 100]),
    (
        "antidisestablishmentarianism hypercholesterolemia",
        [3424, 10521, 4355, 7875, 13602, 3672, 12199, 2964, 23760, 9905, 4244, 27833, 17577],
    ),
    (
        "1234567890 12:30 2026-11-30",
        [13138, 19961, 2575, 2581, 2620, 21057, 2260, 1024, 2382, 16798, 2575, 1011, 2340, 1011, 2382],
    ),
    ("e\u0301 a\u0308\u0323", [1041, 1037]),
    ("𠀀𪜀𫝀 𝒜𝓃𝓃", [100, 100, 100, 100]),
]


TOKENIZER = WordPiece(VOCABULARY.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("text", "ids"), REFERENCE)
def test_a_text_becomes_the_numbers_of_the_reference_tokenizer(text: str, ids: list[int]) -> None:
    assert TOKENIZER.encode(text) == ids


def test_the_marks_of_the_model_stay_text_in_a_memory() -> None:
    ids = TOKENIZER.encode("[CLS] [SEP] [MASK] [PAD]")

    assert not {TOKENIZER.ids[mark] for mark in ("[CLS]", "[SEP]", "[MASK]", "[PAD]")} & set(ids)


@given(st.text(alphabet=st.characters(codec=None), max_size=300))
def test_any_text_becomes_numbers_of_the_vocabulary(text: str) -> None:
    ids = TOKENIZER.encode(text)

    # 0 is the padding, from which a real piece could not be told.
    assert all(0 < number < len(TOKENIZER.ids) for number in ids)


@given(st.text(max_size=100), st.text(max_size=100))
def test_texts_apart_by_a_space_are_tokenized_apart(one: str, other: str) -> None:
    assert TOKENIZER.encode(f"{one} {other}") == TOKENIZER.encode(one) + TOKENIZER.encode(other)


@given(st.text(alphabet="abcdefg éÉÀ.,-'", max_size=100))
def test_upper_case_and_accents_make_no_difference(text: str) -> None:
    assert TOKENIZER.encode(text.upper()) == TOKENIZER.encode(text)


@given(st.text(alphabet=st.characters(codec=None), max_size=200))
def test_words_hold_no_space_and_are_never_empty(text: str) -> None:
    assert all(word and not any(map(str.isspace, word)) for word in words(text))


def test_the_cache_of_words_is_bounded_and_changes_nothing() -> None:
    fresh = WordPiece(VOCABULARY.read_text(encoding="utf-8"))
    limit = fresh.cached_pieces.cache_info().maxsize
    many = " ".join(f"word{number}" for number in range((limit or 0) + 500))

    first, second = fresh.encode(many), fresh.encode(many)

    assert first == second
    assert fresh.cached_pieces.cache_info().currsize == limit


def test_a_hundred_thousand_letters_without_a_space_are_one_unknown_word() -> None:
    assert TOKENIZER.encode("a" * 100_000) == [TOKENIZER.unknown]
