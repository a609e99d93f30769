from typing import Any, cast

from django.contrib import admin
from django.db.models import ForeignKey
from django.forms import BaseInlineFormSet, ModelForm
from django.http import HttpRequest

from elowen.admin import WrittenByActions
from memories.actions import categories, projects
from memories.models import Account, Category, Project, ProjectMember
from memories.requests import account_of


@admin.register(Category)
class CategoryAdmin(WrittenByActions[Category]):
    """The category of a person; a pool belongs to its project and goes with it."""

    list_display = ["name", "owner", "project", "color", "icon"]
    list_filter = ["project"]
    list_select_related = ["owner", "project"]
    search_fields = ["name", "owner__username"]
    raw_id_fields = ["owner"]
    fields = ["owner", "name", "description", "color", "icon", "project", "created_at"]

    def get_readonly_fields(self, request: HttpRequest, obj: Category | None = None) -> list[str]:
        return ["created_at", "owner"] if obj else ["created_at"]

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        return super().formfield_for_foreignkey(
            db_field, request, **kwargs, required=db_field.name == "owner"
        )

    def has_change_permission(self, request: HttpRequest, obj: Category | None = None) -> bool:
        return super().has_change_permission(request, obj) and not _is_pool(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Category | None = None) -> bool:
        return super().has_delete_permission(request, obj) and not _is_pool(obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[Any, Any, set[Any], list[Any]]:
        deleted, counts, missing, protected = super().get_deleted_objects(objs, request)
        return deleted, counts, missing, [*protected, *(str(one) for one in objs if _is_pool(one))]

    def save_model(
        self, request: HttpRequest, obj: Category, form: ModelForm[Category], change: bool
    ) -> None:
        given = {_column(name): getattr(obj, _column(name)) for name in form.changed_data if name != "owner"}
        if change:
            categories.update_category(category_id=obj.pk, by=_owner(obj), changes=given)
        else:
            obj.pk = categories.create_category(owner=_owner(obj), **given).pk

    def delete_model(self, request: HttpRequest, obj: Category) -> None:
        categories.delete_category(category_id=obj.pk, by=_owner(obj))


class ProjectMemberInline(admin.TabularInline[ProjectMember, Project]):
    model = ProjectMember
    raw_id_fields = ["account"]
    extra = 0


@admin.register(Project)
class ProjectAdmin(WrittenByActions[Project]):
    list_display = ["slug", "name", "memory_shared", "root_path"]
    list_filter = ["memory_shared"]
    search_fields = ["slug", "name"]
    readonly_fields = ["created_at"]
    inlines = [ProjectMemberInline]

    def save_model(self, request: HttpRequest, obj: Project, form: ModelForm[Project], change: bool) -> None:
        by = account_of(request)
        if not change:
            made = projects.create_project(by=by, slug=obj.slug, name=obj.name, root_path=obj.root_path)
            obj.pk = made.pk
        given = {name: getattr(obj, name) for name in form.changed_data}
        projects.update_project(project_id=obj.pk, by=by, changes=given)

    def save_formset(
        self,
        request: HttpRequest,
        form: ModelForm[Project],
        formset: BaseInlineFormSet[ProjectMember, Project, Any],
        change: bool,
    ) -> None:
        """Make the members exactly the listed ones."""
        formset.save(commit=False)  # for the administration's own log
        kept = [row.instance for row in formset.forms if row not in formset.deleted_forms]
        listed = [member for member in kept if member.account_id]
        by, project_id = account_of(request), formset.instance.pk
        wanted = {member.account_id for member in listed}
        gone = ProjectMember.objects.filter(project=project_id).exclude(account__in=wanted)
        for account_id in gone.values_list("account_id", flat=True):
            projects.remove_member(project_id=project_id, by=by, account_id=account_id)
        for member in listed:
            projects.set_member(
                project_id=project_id, by=by, account_id=member.account_id, is_manager=member.is_manager
            )
        shared = [member.account_id for member in listed if member.on_share_list]
        projects.set_share_list(project_id=project_id, by=by, account_ids=shared)

    def delete_model(self, request: HttpRequest, obj: Project) -> None:
        projects.delete_project(project_id=obj.pk, by=account_of(request))


def _is_pool(category: Category | None) -> bool:
    return category is not None and category.owner_id is None


def _owner(category: Category) -> Account:
    return cast(Account, category.owner)  # of a pool nothing is written here


def _column(name: str) -> str:
    return "project_id" if name == "project" else name
