"""Errors that a user's input can cause; they load nothing, so that every command can name them."""


class InputError(Exception):
    """Input that breaks a rule, which its message names in one line."""

    @property
    def message(self) -> str:
        """The line."""
        return str(self)


def extra(name: str) -> str:
    """Say how an extra is installed: from the package's folder, as no registry has the package under its name."""
    return f"pip install '.[{name}]' in canaryproof's folder"


class RuleError(ValueError):
    """A rule that a file breaks, with the field's name; whoever opened the file names it."""
