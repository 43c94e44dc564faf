"""Errors that a user's input can cause; they load nothing, so that every command can name them."""

from canaryproof.kernels.public import set_module


@set_module("canaryproof")
class InputError(ValueError):
    """A file, or something else from outside, that breaks a rule: the message names both, in one line.

    An argument that breaks a rule is an ordinary ``ValueError``, so that ``except ValueError`` catches either.

    Examples
    --------
    >>> import canaryproof as cp
    >>> try:
    ...     scores = cp.Scores.load("scores.json")
    ... except cp.InputError as error:
    ...     print(error)
    scores.json: No such file or directory
    """

    @property
    def message(self) -> str:
        """The line."""
        return str(self)


class OutputError(InputError):
    """A file that could not be written, such as on a full disk; the input may be as it should."""


def extra(name: str) -> str:
    """Say how an extra is installed: from the package's folder, as no registry has the package under its name."""
    return f"pip install '.[{name}]' in canaryproof's folder"


class RuleError(ValueError):
    """A broken rule with the field's name; the caller, who opened the file, adds the file's name."""
