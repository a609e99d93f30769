"""Which memories of a scope hold words of a question, and what that is worth. Exact, over the whole scope.

The worth of a word is its rarity in the scope, `ln(1 + (n - held + 0.5) / (held + 0.5))`, that of a memory
the sum over the words it holds: BM25 without the frequency in a text and without the text's length, which on
short notes only add noise. See docs/adr/0008.
"""

from typing import Any

from embeddings.scoring import vector_cursor
from memories.models import Account
from recall.access_sql import access_params, usable_sql
from recall.scope import RecallScope

MOST_WORDS = 64  # of a longer question only the rarest count
MICRO = 1_000_000  # worths are whole numbers, so that their sums do not depend on the order

# Common table expressions behind `usable`, which they read:
# rarity (lexeme, own, held, worth), and words (memory_id, worth).
# `own` words are in the reader's language; the others are those of the people who share a pool.
# The laterals are never merged into a join, and a probe of the index reads the holders of one word.
WORDS = f"""
asked as materialized (
    select lexeme, bool_or(reader.own) as own
    from (
        select language, bool_or(id = %(account)s) as own from memories_account
        where id = %(account)s or id in (
            select member.account_id from memories_projectmember member
            join memories_category c on c.project_id = member.project_id
            where c.id = any(array(select id from usable where pool)))
        group by language
    ) reader, unnest(recall_lexemes(%(text)s, reader.language)) lexeme
    group by lexeme
),
rarity as materialized (
    select lexeme, own, held,
           round({MICRO} * ln(1 + (total - held + 0.5::float8) / (held + 0.5::float8)))::bigint as worth
    from (
        select lexeme, own,
            (select count(*) from recall_memoryword w
             where w.category_id = any(array(select id from usable)) and w.lexeme = asked.lexeme) as held,
            (select count(*) from memories_memory m
             where m.category_id = any(array(select id from usable)) and m.status = 'active') as total
        from asked
    ) counted
    order by held, lexeme collate "C" limit {MOST_WORDS}
),
words as materialized (
    select holder.memory_id, sum(rarity.worth)::bigint as worth
    from rarity cross join lateral (
        select w.memory_id from recall_memoryword w
        where w.category_id = any(array(select id from usable)) and w.lexeme = rarity.lexeme offset 0
    ) holder
    group by holder.memory_id
)
"""  # noqa: S608 - constants
BEST = "(select max(worth) from words)"
POSSIBLE = "(select sum(worth) from rarity where own)"


def weighed(account: Account, scope: RecallScope, text: str) -> list[tuple[str, int, int]]:
    """Return (lexeme, memories that hold it, worth) of the words of a text, rarest first."""
    ctes = f"with usable as materialized ({usable_sql()}), {WORDS}"
    sql: Any = f"{ctes} select lexeme, held, worth from rarity order by worth desc, lexeme"  # noqa: S608
    with vector_cursor() as cursor:
        return cursor.execute(sql, access_params(account, scope) | {"text": text}).fetchall()
