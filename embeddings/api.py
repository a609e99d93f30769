from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from elowen.lib.errors import Refused
from embeddings import state
from embeddings.actions.reindexing import begin_reindex, stop_reindex
from embeddings.actions.storing import change_config
from embeddings.config import EmbeddingConfig, load, parse
from embeddings.connections import Identity
from embeddings.serializers import (
    EmbeddingConfigSerializer,
    EmbeddingStateSerializer,
    EmbeddingTestSerializer,
    EmbeddingTrialSerializer,
)
from memories.api.paging import validated
from memories.models import Account
from memories.requests import account_of


class EmbeddingView(APIView):
    @extend_schema(operation_id="embedding_read", responses=EmbeddingStateSerializer)
    def get(self, request: Request) -> Response:
        """Which model turns memories into vectors, and how much is still to be done."""
        return Response(state.describe(account_of(request)))

    @extend_schema(
        operation_id="embedding_change", request=EmbeddingConfigSerializer, responses=EmbeddingStateSerializer
    )
    def put(self, request: Request) -> Response:
        """Change the model, for administrators. Everything is indexed anew in the background."""
        account = administrator(request)
        change_config(config=config_in(request), by=account)
        return Response(state.describe(account))


class ReindexView(APIView):
    @extend_schema(operation_id="embedding_reindex", request=None, responses={202: EmbeddingStateSerializer})
    def post(self, request: Request) -> Response:
        """Look for memories without a vector and index them now, for administrators. Goes on where it
        was stopped, and tries at once what has failed before."""
        account = administrator(request)
        begin_reindex(by=account)
        return Response(state.describe(account), status=202)

    @extend_schema(operation_id="embedding_reindex_stop", responses=EmbeddingStateSerializer)
    def delete(self, request: Request) -> Response:
        """Stop it until it is begun again; what is written meanwhile is still indexed."""
        account = administrator(request)
        stop_reindex(by=account)
        return Response(state.describe(account))


class EmbeddingTestView(APIView):
    @extend_schema(
        operation_id="embedding_test",
        request=EmbeddingTrialSerializer,
        responses=EmbeddingTestSerializer,
    )
    def post(self, request: Request) -> Response:
        """Embed one text, with the settings sent or else the stored ones. Stores nothing."""
        account = administrator(request)
        config = load() if request.data == {} else config_in(request, EmbeddingTrialSerializer)
        return Response(state.try_out(config, Identity(account.pk)))


def administrator(request: Request) -> Account:
    account = account_of(request)
    if not account.is_staff:
        raise Refused("Only administrators may do this.")
    return account


def config_in(
    request: Request, kind: type[EmbeddingConfigSerializer] = EmbeddingConfigSerializer
) -> EmbeddingConfig:
    return parse(validated(kind, request.data))
