"""Strict shapes for REST: nothing is coerced, nothing unknown is dropped, and answers are always JSON."""

import json
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework import serializers, status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser, JSONParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

from elowen.lib.text import unstorable

MAX_ID = 2**63 - 1


class TooLarge(APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"

    def __init__(self) -> None:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        super().__init__(f"A request may have at most {limit:,} bytes.")


class StrictJSONParser(JSONParser):
    """JSON of bounded size and depth."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        raw = stream.read(limit + 1)
        if len(raw) > limit:
            raise TooLarge
        try:
            return json.loads(raw.decode(), parse_constant=_refuse_constant)
        except RecursionError:
            raise ParseError("The JSON is nested too deeply.") from None
        except (UnicodeDecodeError, json.JSONDecodeError, NotANumber) as error:
            raise ParseError(f"This is not JSON: {error}.") from None
        except ValueError:
            raise ParseError("A number has too many digits.") from None


class AlwaysJSON(DefaultContentNegotiation):
    """Answers in the view's first format, whatever the client would accept."""

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = renderers[0] if renderers else JSONRenderer()
        return renderer, renderer.media_type

    def select_parser(self, request: Request, parsers: Any) -> BaseParser | None:
        return super().select_parser(request, parsers)


class StrictCharField(serializers.CharField):
    """A string that can be stored. Numbers and booleans are not strings."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        if problem := unstorable(data):
            raise serializers.ValidationError(problem, code="unstorable")
        return str(super().to_internal_value(data))


class StrictIntegerField(serializers.IntegerField):
    """A whole number; `"5"`, `5.0` and `true` are none."""

    def to_internal_value(self, data: Any) -> int:
        if type(data) is not int:
            self.fail("invalid")
        return int(super().to_internal_value(data))


class IdField(StrictIntegerField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_value=1, max_value=MAX_ID, **kwargs)


class StrictChoiceField(serializers.ChoiceField):
    """One of several strings. What is no string, or cannot be sent back, is not quoted in the refusal."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or unstorable(data):
            raise serializers.ValidationError("This is none of the choices.", code="invalid_choice")
        return str(super().to_internal_value(data))


class StrictBooleanField(serializers.BooleanField):
    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class StrictFloatField(serializers.FloatField):
    def to_internal_value(self, data: Any) -> float:
        if type(data) not in (int, float):
            self.fail("invalid")
        return float(super().to_internal_value(data))


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses unknown keys by name."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = {name for name, field in self.fields.items() if not field.read_only}
            unknown = sorted(str(name) for name in data if name not in known)
            if unknown:
                printable = [name.encode("utf-8", "replace").decode() for name in unknown]
                raise serializers.ValidationError({name: ["There is no such field."] for name in printable})
        return super().to_internal_value(data)


class NotANumber(ValueError):
    """NaN and the infinities, which Python reads and JSON does not have."""


def _refuse_constant(name: str) -> None:
    raise NotANumber(f"{name} is not a JSON number")
