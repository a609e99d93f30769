from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from elowen.help import articles
from elowen.lib.text import unstorable
from memories.requests import account_of
from recall.keyword import MEMORY_QUERY_CHARS
from recall.site import find

MAX_FOUND = 12


@login_required
def help_index(request: HttpRequest) -> HttpResponse:
    """Show the articles, or what is found for `q`."""
    query = request.GET.get("q", "")[:MEMORY_QUERY_CHARS].strip()
    found = [] if unstorable(query) else find(account_of(request), query, limit=MAX_FOUND)[0]
    topics = [article for article in articles().values() if not article.is_decision]
    decisions = [article for article in articles().values() if article.is_decision]
    context = {"query": query, "found": found, "topics": topics, "decisions": decisions}
    return render(request, "help/index.html", context)


@login_required
def help_article(request: HttpRequest, slug: str) -> HttpResponse:
    article = articles().get(slug)
    if article is None:
        raise Http404
    return render(request, "help/article.html", {"article": article})
