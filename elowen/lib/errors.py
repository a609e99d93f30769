"""What the rules may say no with. The docstring is the message a person reads."""


class ElowenError(Exception):
    """Something went wrong."""

    code = "error"

    def __init__(self, message: str = "", *, field: str | None = None) -> None:
        """`field` names the input that has to change, where one input alone is at fault."""
        super().__init__(message or (type(self).__doc__ or "").strip())
        self.field = field


class NotFound(ElowenError):
    """There is no such record here, or it is not yours."""

    code = "not_found"


class Invalid(ElowenError):
    """The value cannot be accepted."""

    code = "invalid"


class Refused(ElowenError):
    """Your account may not do this."""

    code = "refused"


class Conflict(ElowenError):
    """The record is in a state that does not allow this."""

    code = "conflict"


class Stale(ElowenError):
    """The record has changed since you read it; read it again."""

    code = "stale"


class Unavailable(ElowenError):
    """A part of the service that this needs does not answer right now."""

    code = "unavailable"
