"""Where a recall may look: categories, resolved when it is asked for. It authorises nothing by itself."""

from dataclasses import dataclass

from django.db.models import Q

from memories.actions.categories import member_project
from memories.models import Account, Category, Project
from memories.models.category import CategoryQuerySet
from recall.directories import innermost, real


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


def project_at(account: Account, directory: str, *, is_local: bool = False) -> int | None:
    """Return the account's project whose root lies nearest above a directory; None for none.

    Args:
        is_local: the directory is on this machine. It must exist then, and links are followed. That of a
            client elsewhere is taken as written, without a look at our own disk.
    """
    roots = Project.objects.filter(members=account).exclude(root_path="").order_by("pk")
    known = roots.values_list("pk", "root_path")
    if not is_local:
        return innermost(known, directory)
    here = real(directory)
    return innermost(((pk, real(root) or root) for pk, root in known), here) if here else None


def usable_categories(account: Account, scope: RecallScope) -> CategoryQuerySet:
    """Keep those of the scope that the account may use when the statement around this runs."""
    return Category.objects.usable_by(account).filter(pk__in=scope.category_ids)
