class Secret(str):
    """A text that whatever shows variables must not show: error reports, debug pages, logs of values.

    It is itself where it is used, as in a header.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "'•••'"
