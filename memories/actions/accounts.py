"""Accounts: made, switched, closed."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from elowen.lib.errors import Conflict, Invalid, NotFound
from memories.actions.categories import default_category
from memories.actions.purging import purge_all
from memories.audit import Note
from memories.models import Account, Category, Memory

PREFERENCES = ("auto_recall", "auto_live_recall", "auto_save", "language")


@transaction.atomic
def create_account(
    *, username: str, password: str | None = None, email: str = "", is_staff: bool = False
) -> Account:
    """Make an account with its first category. Without a password it can use keys only.

    Raises:
        Conflict: the name is taken.
        Invalid: the name or the password cannot be accepted; `field` names which.
    """
    account = Account(username=username, email=email, is_staff=is_staff)
    _set_password(account, password)
    return _store(account)


@transaction.atomic
def create_administrator(*, username: str, password: str) -> Account:
    account = Account(username=username, is_staff=True, is_superuser=True)
    account.set_password(password)
    return _store(account)


def change_preferences(*, account: Account, changes: Mapping[str, Any]) -> Account:
    """Change some of PREFERENCES."""
    fields = [name for name in PREFERENCES if name in changes]
    for name in fields:
        setattr(account, name, changes[name])
    account.save(update_fields=fields)
    return account


def deactivate_account(*, account_id: int) -> Account:
    """Lock an account out; its keys and sessions stop working at once, its memories stay."""
    account = Account.objects.filter(pk=account_id).first()
    if account is None:
        raise NotFound
    account.is_active = False
    account.save(update_fields=["is_active"])
    return account


@transaction.atomic
def delete_account(*, account: Account, by: Account) -> None:
    """Delete an account with its own memories; what it gave to pools stays there, without an author."""
    # First the account, as a sweep does: in the other order each would wait for the other.
    Account.objects.select_for_update(no_key=True).get(pk=account.pk)
    Memory.objects.filter(owner=account, category__in=Category.objects.filter(owner=None)).update(owner=None)
    purge_all(Memory.objects.owned_by(account), by=by, note=Note(reason="account deleted"))
    account.delete()


def _set_password(account: Account, password: str | None) -> None:
    if password is not None:
        try:
            validate_password(password, account)
        except ValidationError as error:
            raise Invalid(" ".join(error.messages), field="password") from error
    account.set_password(password)


def _store(account: Account) -> Account:
    try:
        account.clean_fields(exclude=["password"])
        with transaction.atomic():
            account.save(force_insert=True)
    except ValidationError as error:
        raise Invalid(" ".join(error.messages), field=next(iter(error.message_dict))) from error
    except IntegrityError as error:
        raise Conflict("This name is taken.", field="username") from error
    default_category(account)
    return account
