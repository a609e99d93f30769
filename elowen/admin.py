"""What the administration looks like everywhere, and the lists that belong to no app of ours."""

from typing import Any, Final

from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django_q import admin as _of_the_queue  # noqa: F401 - registers its own, which those below replace
from django_q.models import Failure, OrmQ, Schedule, Success

from elowen.lib.errors import ElowenError

admin.site.site_title = admin.site.site_header = "Elowen"
admin.site.index_title = "Administration"


class ReadOnlyAdmin[M: Model](admin.ModelAdmin[M]):
    """For rows that machines write: to be read, never added, changed or deleted here."""

    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False


class WrittenByActions[M: Model](admin.ModelAdmin[M]):
    """Writes go through the functions that everybody uses; what they refuse is said on the page."""

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except ElowenError as error:
            self.message_user(request, str(error), messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[M]) -> None:
        for row in queryset:
            self.delete_model(request, row)


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnlyAdmin[LogEntry]):
    list_display = ["action_time", "user", "object_repr", "change_message"]
    list_filter = ["action_time", "user"]
    list_select_related = ["user"]


for queue_model in (Schedule, Success, Failure, OrmQ):
    if admin.site.is_registered(queue_model):
        admin.site.unregister(queue_model)


TASK_FIELDS: Final = ("name", "func", "args", "kwargs", "started", "stopped", "attempt_count", "result")


@admin.register(Schedule)
class ScheduleAdmin(ReadOnlyAdmin[Schedule]):
    list_display = ["name", "func", "minutes", "next_run"]


@admin.register(Success)
class SuccessAdmin(ReadOnlyAdmin[Success]):
    list_display = ["name", "func", "started", "stopped", "attempt_count"]
    list_filter = ["func"]
    fields = TASK_FIELDS


@admin.register(Failure)
class FailureAdmin(ReadOnlyAdmin[Failure]):
    list_display = ["name", "func", "started", "stopped", "attempt_count"]
    list_filter = ["func"]
    fields = TASK_FIELDS


@admin.register(OrmQ)
class WaitingTaskAdmin(ReadOnlyAdmin[OrmQ]):
    list_display = ["id", "key", "lock"]
    fields = ["key", "lock"]  # the payload is a signed pickle
