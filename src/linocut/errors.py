"""The one error that users see."""


class InputError(ValueError):
    """Something given to linocut cannot be used: the message says what was got, what was wanted, what to do."""
