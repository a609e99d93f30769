from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from elowen.lib.rest import StrictCharField
from memories.api.paging import validated_query
from memories.requests import account_of
from recall.api import PATH_HEADER
from recall.keyword import MEMORY_QUERY_CHARS
from recall.site import HELP, PAGE, find


class SiteQuery(serializers.Serializer[Any]):
    """What to look for among pages and help."""

    q = StrictCharField(max_length=MEMORY_QUERY_CHARS, allow_blank=True)
    limit = serializers.IntegerField(min_value=1, max_value=50, default=10)


class SiteResult(serializers.Serializer[Any]):
    kind = serializers.ChoiceField([PAGE, HELP])
    title = serializers.CharField()
    excerpt = serializers.CharField()
    url = serializers.CharField(help_text="A path of this service, with an anchor where it is a section.")
    score = serializers.FloatField(help_text="Comparable within one answer only.")


class SiteReply(serializers.Serializer[Any]):
    results = SiteResult(many=True)


class SiteSearch(APIView):
    """Pages that the account may open, and sections of the help."""

    @extend_schema(operation_id="site_search", parameters=[SiteQuery], responses=SiteReply)
    def get(self, request: Request) -> Response:
        """Find the way by meaning and words together, best first; by words alone without a model."""
        query = validated_query(SiteQuery, request)
        found, path = find(account_of(request), query["q"], limit=query["limit"])
        results = [
            {
                "kind": one.item.kind,
                "title": one.item.title,
                "excerpt": one.excerpt,
                "url": one.item.url,
                "score": one.score,
            }
            for one in found
        ]
        return Response({"results": results}, headers={PATH_HEADER: path})
