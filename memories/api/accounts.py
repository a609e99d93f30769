from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from elowen.lib.errors import NotFound
from memories.actions import accounts, keys
from memories.api.memories import IDEMPOTENCY_KEY
from memories.api.paging import page_reply, paged, validated
from memories.idempotency import idempotent
from memories.models import Account, ApiKey
from memories.requests import account_of
from memories.serializers import (
    AccountInput,
    AccountRow,
    KeyInput,
    KeyRow,
    MeRow,
    NewKeyRow,
    PageQuery,
    PreferencesInput,
)


class IsAdministrator(BasePermission):
    """Administrators, and with a key only one that may write: a list of accounts is not for every reader."""

    message = "Only administrators may use this, and not with a key that only reads."

    def has_permission(self, request: Request, view: APIView) -> bool:
        may_write = not isinstance(request.auth, ApiKey) or "write" in request.auth.scopes
        return may_write and bool(getattr(request.user, "is_staff", False))


def issue(request: Request, account: Account) -> Response:
    data = validated(KeyInput, request.data)
    issued = keys.issue_key(
        account=account,
        name=data["name"],
        scopes=data.get("scopes", ["read", "write"]),
        expires_at=data.get("expiresAt"),
        maker=request.auth if isinstance(request.auth, ApiKey) else None,
    )
    row: dict[str, Any] = {**KeyRow(issued.key).data, "secret": issued.secret}
    return Response(row, status=201, headers={"Cache-Control": "no-store"})


class Me(APIView):
    @extend_schema(operation_id="me_get", responses=MeRow)
    def get(self, request: Request) -> Response:
        return Response(MeRow(account_of(request)).data)

    @extend_schema(operation_id="me_change", request=PreferencesInput, responses=MeRow)
    def patch(self, request: Request) -> Response:
        changes = validated(PreferencesInput, request.data)
        return Response(MeRow(accounts.change_preferences(account=account_of(request), changes=changes)).data)


class KeyList(APIView):
    @extend_schema(operation_id="key_list", parameters=[PageQuery], responses=page_reply("KeyPage", KeyRow))
    def get(self, request: Request) -> Response:
        return paged(request, ApiKey.objects.filter(account=account_of(request)), KeyRow, ordering="-id")

    @extend_schema(
        operation_id="key_create", request=KeyInput, responses={201: NewKeyRow}, parameters=[IDEMPOTENCY_KEY]
    )
    @idempotent
    def post(self, request: Request) -> Response:
        return issue(request, account_of(request))


class KeyDetail(APIView):
    @extend_schema(operation_id="key_revoke", responses={204: None})
    def delete(self, request: Request, key_id: int) -> Response:
        keys.revoke_key(account=account_of(request), key_id=key_id)
        return Response(status=204)


class AdministratorView(APIView):
    def get_permissions(self) -> list[Any]:
        return [*super().get_permissions(), IsAdministrator()]


class AccountList(AdministratorView):
    @extend_schema(
        operation_id="account_list", parameters=[PageQuery], responses=page_reply("AccountPage", AccountRow)
    )
    def get(self, request: Request) -> Response:
        return paged(request, Account.objects.all(), AccountRow)

    @extend_schema(
        operation_id="account_create",
        request=AccountInput,
        responses={201: AccountRow},
        parameters=[IDEMPOTENCY_KEY],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        account = accounts.create_account(**validated(AccountInput, request.data))
        return Response(AccountRow(account).data, status=201)


class AccountDetail(AdministratorView):
    @extend_schema(operation_id="account_deactivate", responses={200: AccountRow})
    def delete(self, request: Request, account_id: int) -> Response:
        """Lock the account out; its memories stay."""
        return Response(AccountRow(accounts.deactivate_account(account_id=account_id)).data)


class AccountKeys(AdministratorView):
    @extend_schema(
        operation_id="account_key_create",
        request=KeyInput,
        responses={201: NewKeyRow},
        parameters=[IDEMPOTENCY_KEY],
    )
    @idempotent
    def post(self, request: Request, account_id: int) -> Response:
        account = Account.objects.filter(pk=account_id).first()
        if account is None:
            raise NotFound
        return issue(request, account)
