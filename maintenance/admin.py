from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from elowen.admin import ReadOnlyAdmin
from maintenance.actions import ask_for_sweep
from maintenance.models import SweepAccount, SweepRun

COUNTS = ["eligible", "evicted", "limited", "spared", "failed"]
MAY_START = "maintenance.start_sweep"


@admin.register(SweepRun)
class SweepRunAdmin(ReadOnlyAdmin[SweepRun]):
    list_display = ["started_at", "kind", "state", "progress", "scanned", *COUNTS, "asked_by", "problem"]
    list_filter = ["state", "dry_run", "started_at"]
    ordering = ["-pk"]
    list_per_page = 50
    change_list_template = "admin/maintenance/sweeps.html"
    fields = [
        "started_at", "finished_at", "kind", "state", "progress", "scanned", *COUNTS, "accounts_link",
        "asked_by", "problem", "policy",
    ]  # fmt: skip
    readonly_fields = ["kind", "progress", "accounts_link"]

    def get_urls(self) -> list[URLPattern]:
        start = self.admin_site.admin_view(self.start)
        return [path("start/", start, name="maintenance_sweeprun_start"), *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        context = {"may_start": request.user.has_perm(MAY_START)} | (extra_context or {})
        return super().changelist_view(request, context)

    def start(self, request: HttpRequest) -> HttpResponse:
        """Let a worker sweep, or count what a sweep would take."""
        if not request.user.has_perm(MAY_START):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        dry_run = "dry_run" in request.POST
        ask_for_sweep(dry_run=dry_run, asked_by=request.user.get_username())
        told = "A dry run was asked for; it changes nothing." if dry_run else "A sweep was asked for."
        self.message_user(request, f"{told} It is listed here once it has begun.", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:maintenance_sweeprun_changelist"))

    @admin.display(description="Kind")
    def kind(self, run: SweepRun) -> str:
        return "dry run" if run.dry_run else "sweep"

    @admin.display(description="Progress")
    def progress(self, run: SweepRun) -> str:
        return f"{run.progress:.0%}"

    @admin.display(description="Per account")
    def accounts_link(self, run: SweepRun) -> SafeString:
        address = reverse("admin:maintenance_sweepaccount_changelist")
        return format_html('<a href="{}?run={}">The counts of each account</a>', address, run.pk)


@admin.register(SweepAccount)
class SweepAccountAdmin(ReadOnlyAdmin[SweepAccount]):
    list_display = ["run", "account_id", *COUNTS]
    list_select_related = ["run"]
    search_fields = ["account_id__exact"]
    search_help_text = "The id of an account"
    ordering = ["-run", "account_id"]
    list_per_page = 50
