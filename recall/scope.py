"""Where a recall may look: categories, resolved when it is asked for. It authorises nothing by itself."""

from dataclasses import dataclass

from django.db.models import Q

from memories.actions.categories import member_project
from memories.models import Account, Category
from memories.models.category import CategoryQuerySet


@dataclass(frozen=True)
class RecallScope:
    """The ids of categories. Empty: nothing is recalled. Uncategorised memories are in no scope."""

    category_ids: tuple[int, ...] = ()


def recall_scope(account: Account, project_id: int | None = None) -> RecallScope:
    """Return the account's global categories; with a project also its own there, and the pool it may use.

    Raises:
        NotFound, Refused: there is no such project, or the account is no member.
    """
    wanted = Q(project=None)
    if project_id is not None:
        wanted |= Q(project=member_project(account=account, project_id=project_id))
    found = Category.objects.usable_by(account).filter(wanted)
    return RecallScope(tuple(found.order_by("pk").values_list("pk", flat=True)))


def usable_categories(account: Account, scope: RecallScope) -> CategoryQuerySet:
    """Keep those of the scope that the account may use when the statement around this runs."""
    return Category.objects.usable_by(account).filter(pk__in=scope.category_ids)
