"""The SQL of `memories.vitality` as expressions for a QuerySet of memories."""

import re
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models.expressions import RawSQL

from memories.policy import RetentionPolicy
from memories.vitality import EVICTABLE_AT, IS_EVICTABLE, VITALITY, retention_params

PARAMETER = re.compile(r"%\((\w+)\)s")


def vitality_sql(policy: RetentionPolicy, now: datetime) -> RawSQL:
    return _expression(VITALITY, policy, now, models.FloatField())


def is_evictable_sql(policy: RetentionPolicy, now: datetime) -> RawSQL:
    return _expression(IS_EVICTABLE, policy, now, models.BooleanField())


def evictable_at_sql(policy: RetentionPolicy, now: datetime) -> RawSQL:
    return _expression(EVICTABLE_AT, policy, now, models.DateTimeField())


def _expression(
    template: str, policy: RetentionPolicy, now: datetime, output_field: models.Field[Any, Any]
) -> RawSQL:
    """Django counts parameters by place, and calls the table by its name."""
    values = retention_params(policy, now)
    places = tuple(values[name] for name in PARAMETER.findall(template))
    statement = re.sub(r"\bm\.", '"memories_memory".', PARAMETER.sub("%s", template))
    return RawSQL(statement, places, output_field=output_field)  # noqa: S611
