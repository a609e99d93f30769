"""All paths of the service, composed from what the apps offer."""

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import include, path, re_path
from django.utils.csp import CSP
from django.views import defaults
from django.views.decorators.csp import csp_override
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView

from elowen.api import problem_page, unknown_path
from elowen.health import alive, ready
from embeddings.urls import urlpatterns as embedding_paths
from maintenance.metrics import Metrics
from maintenance.urls_api import urlpatterns as maintenance_paths
from memories.api.config import Config
from memories.urls_api import memory_urlpatterns
from memories.urls_api import urlpatterns as memories_api
from recall.api import MemoryListWithSearch
from recall.config import limits_under
from recall.site_api import SiteSearch
from recall.urls import urlpatterns as recall_paths

# The documentation's own script writes styles into the page; nothing else may.
docs_csp = csp_override(
    {
        "default-src": [CSP.SELF],
        "style-src": [CSP.SELF, CSP.UNSAFE_INLINE],
        "img-src": [CSP.SELF, "data:"],
        "frame-ancestors": [CSP.NONE],
    }
)

urlpatterns = [
    path("livez", alive),
    path("readyz", ready),
    path("metrics", Metrics.as_view()),
    path("api/schema", SpectacularJSONAPIView.as_view(), name="schema"),
    path("api/docs", docs_csp(SpectacularSwaggerSplitView.as_view(url_name="schema")), name="docs"),
    path("api/memory", MemoryListWithSearch.as_view()),
    path("api/search", SiteSearch.as_view(), name="site-search"),
    path("api/config", Config.as_view(limits_under=limits_under)),
    path("api/memory/", include((recall_paths, "recall"))),
    path("api/memory/", include((embedding_paths, "embeddings"))),
    path("api/memory/", include((maintenance_paths, "maintenance-api"))),
    path("api/memory", include((memory_urlpatterns, "memory"))),
    path("api/", include((memories_api, "api"))),
    re_path(r"^api(?:/|$)", unknown_path),
    path("admin/", admin.site.urls),
    path(
        "sign-in",
        LoginView.as_view(template_name="sign_in.html", redirect_authenticated_user=True),
        name="sign-in",
    ),
    path("sign-out", LogoutView.as_view(), name="sign-out"),
    path("", RedirectView.as_view(pattern_name="memories:list"), name="home"),
    path("", include("memories.urls")),
    path("", include("maintenance.urls")),
    path("settings/embeddings", include("embeddings.urls_pages")),
    path("help", include("recall.site_urls")),
]


def for_programs(request: HttpRequest) -> bool:
    return request.path == "/api" or request.path.startswith("/api/")


def handler400(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if for_programs(request):
        return problem_page(400, code="bad_request", detail="The request cannot be read.")
    return defaults.bad_request(request, exception)


def handler404(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return unknown_path(request) if for_programs(request) else defaults.page_not_found(request, exception)


def handler500(request: HttpRequest) -> HttpResponseBase:
    if for_programs(request):
        return problem_page(500, code="error", detail="Something went wrong here; the log says what.")
    return defaults.server_error(request)
