"""The rule of `memories.vitality` as SQL, for sorting and weighing many rows. All in float8: numeric
arithmetic is many times slower.
"""

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models.expressions import RawSQL

from memories.policy import RetentionPolicy

# Over the alias `m` of memories_memory; takes the parameters `now` and `half_lives`.
VITALITY = """
    least(greatest(
        100::float8
        * power(0.5::float8,
            greatest(date_part('epoch', %(now)s::timestamptz - coalesce(m.last_used_at, m.created_at)), 0)
            / 86400::float8 / (%(half_lives)s::float8[])[m.importance])
        * (0.5::float8 + 0.5::float8 * m.use_count::float8 / (m.use_count + 5)::float8), 0), 100)
"""


def vitality_params(policy: RetentionPolicy, now: datetime) -> dict[str, Any]:
    return {"now": now, "half_lives": [float(days) for days in policy.half_lives]}


def vitality_sql(policy: RetentionPolicy, now: datetime) -> RawSQL:
    """Return the vitality of each row as an expression for a QuerySet of memories."""
    params = vitality_params(policy, now)
    statement = (
        VITALITY.replace("%(now)s", "%s").replace("%(half_lives)s", "%s").replace("m.", '"memories_memory".')
    )
    return RawSQL(statement, (params["now"], params["half_lives"]), output_field=models.FloatField())  # noqa: S611
