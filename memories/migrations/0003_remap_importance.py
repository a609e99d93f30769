"""Moves ranks 1 to 5 onto levels 1, 3, 5, 7 and 9, and the stored retention policy with them."""

import sys

from django.db import migrations
from django.db.models import Max
from django.utils import timezone

SECTION = "runtime.memoryRetention"
TEN_LEVELS = {"1": 1, "2": 3, "3": 7, "4": 14, "5": 21, "6": 30, "7": 45, "8": 60, "9": 90, "10": 180}
FIVE_LEVELS = {"1": 7, "2": 14, "3": 30, "4": 90, "5": 365}

ROW = """jsonb_build_object(
    'id', id, 'owner_id', owner_id, 'category_id', category_id, 'body', body, 'kind', kind,
    'importance', importance, 'status', status, 'source', source, 'use_count', use_count,
    'last_used_at', last_used_at, 'created_at', created_at, 'updated_at', updated_at,
    'dream_reviewed_at', dream_reviewed_at, 'dream_run_id', dream_run_id, 'origin', origin)"""

# One statement: no row moves twice, and each change is in the trail with the row before and after. The
# lock keeps a writer from changing a row between its two pictures.
MOVE = """
set local timezone to 'UTC';
lock table memories_memory in share row exclusive mode;
with before as (select id, {row} as row from memories_memory where {level} <> importance),
moved as (
    update memories_memory set importance = {level} where {level} <> importance
    returning id, owner_id, importance
)
insert into memories_memoryevent
    (memory_id, account_id, action, before, after, actor, reason, model, automatic, created_at)
select moved.id, moved.owner_id, 'update', before.row,
    before.row || jsonb_build_object('importance', moved.importance),
    'migration', '{reason}', '', false, now()
from moved join before on before.id = moved.id
order by moved.id
"""


def move(level, reason):
    def run(apps, schema_editor):
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(MOVE.format(row=ROW, level=level, reason=reason))

    return run


def rewrite_policy(change):
    def run(apps, schema_editor):
        ConfigSection = apps.get_model("memories", "ConfigSection")
        ConfigEvent = apps.get_model("memories", "ConfigEvent")
        row = ConfigSection.objects.select_for_update().filter(name=SECTION).first()
        if row is None:
            return
        before = row.document
        row.document = change(before if isinstance(before, dict) else {})
        # An editor that is open now holds the old revision, and will be refused.
        row.revision = ConfigSection.objects.aggregate(last=Max("revision"))["last"] + 1
        row.updated_at = timezone.now()
        row.save()
        ConfigEvent.objects.create(
            section=SECTION, revision=row.revision, before=before, after=row.document, actor="migration"
        )

    return run


def to_ten_levels(document):
    floor = number(document.get("vitalityFloor"), otherwise=10)
    enabled = document.get("enabled") is not False
    return {
        # A floor of zero was how to pause.
        "enabled": enabled and floor > 0,
        "halfLifeByImportance": TEN_LEVELS,
        "vitalityFloor": clamped(floor, 1, 90) if floor > 0 else 10,
        "graceDays": clamped(number(document.get("graceDays"), otherwise=14), 0, 365),
        "dailyDeletionLimit": round(clamped(number(document.get("dailyDeletionLimit"), otherwise=5), 1, 200)),
    }


def to_five_levels(document):
    return to_ten_levels(document) | {"halfLifeByImportance": FIVE_LEVELS}


def number(value, *, otherwise):
    if isinstance(value, bool) or not isinstance(value, int | float):
        return otherwise
    # A comparison, as math.isfinite refuses an integer of hundreds of digits.
    return value if -sys.float_info.max <= value <= sys.float_info.max else otherwise


def clamped(value, low, high):
    return min(max(value, low), high)


class Migration(migrations.Migration):
    dependencies = [("memories", "0002_ten_levels_of_importance")]
    operations = [
        migrations.RunPython(
            move("(importance * 2 - 1)", "importance moved from five levels to ten"),
            move("((importance + 1) / 2)", "importance moved from ten levels back to five"),
        ),
        migrations.RunPython(rewrite_policy(to_ten_levels), rewrite_policy(to_five_levels)),
    ]
