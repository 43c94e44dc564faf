"""Plays in plain text: every role is a client, as in the next-character task of McMahan et al. (arXiv 1602.05629)."""

from pathlib import Path

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import content, open_file
from canaryproof.verify.papers.training.data.federation import Examples, Federation, held_out
from canaryproof.verify.papers.training.data.files import in_folder
from canaryproof.verify.papers.training.data.tokens import SHAKESPEARE, Vocabulary

# Three times all of Shakespeare's; they take forty times as much memory.
_LARGEST = 2**24


def load(source: Path, length: int = 80) -> Federation:
    """Read a text in UTF-8, or all that end in ``.txt`` in a folder, as plays.

    Speeches are separated by blank lines; the first line of each is ``ROLE:``. A role of one file is another client
    than that of another. A role's speeches, one after the other without its name, are cut into examples of ``length``
    characters; labels are the characters that follow each of them. Tokens are LEAF's 80 characters. The last tenth of a
    role's examples, rounded down, is held out. A role without a whole example is no client.
    """
    if length < 1:
        raise InputError(f"{source}: length must be at least 1, not {length}")
    paths = in_folder(source, "*.txt") if source.is_dir() else [source]
    if sum(path.stat().st_size for path in paths if path.is_file()) > _LARGEST:
        raise InputError(f"{source}: plays must have at most {_LARGEST} bytes in all")
    pieces = (_pieces(text, length) for path in paths for text in _roles(path))
    training, test = held_out((role,) for role in pieces if role)
    if not test:
        raise InputError(f"{source}: some role must have ten examples, more than {10 * length} characters")
    vocabulary = Vocabulary(SHAKESPEARE)

    def as_tokens(role: tuple[list[str]]) -> Examples:
        tokens = vocabulary.tokens("".join(role[0])).reshape(-1, length + 1)
        return tokens[:, :-1], tokens[:, 1:]

    return Federation.of("plays", map(as_tokens, training), map(as_tokens, test), len(vocabulary), len(vocabulary))


def _pieces(text: str, length: int) -> list[str]:
    """Cut a text into examples, each with the first character of the next."""
    return [text[start : start + length + 1] for start in range(0, len(text) - length, length)]


def _roles(path: Path) -> list[str]:
    """Return what each role of a file says, in the order in which they first speak."""
    speeches: dict[str, list[str]] = {}
    role = None
    with open_file(path) as file:
        text = content(file, _LARGEST).decode("utf-8-sig")
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.strip()
        if not words:
            role = None
        elif role is not None:
            speeches[role].append(line.removesuffix("\r") + "\n")
        elif words.endswith(":") and len(words) > 1:
            role = words
            speeches.setdefault(role, [])
        else:
            raise InputError(f"{path}: line {number}: a speech must begin with a line ROLE:")
    return ["".join(lines) for lines in speeches.values()]
