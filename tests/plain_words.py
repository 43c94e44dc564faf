"""Sentences of a Markdown page, to be counted."""

import re

_FENCE = re.compile(r"^(```+|:::+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
# A full stop and the like before a capital, a number or code; not after an abbreviation.
_END = re.compile(r"(?<=[.!?])(?<!\bal\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)[*_)”’\"]*\s+(?=[^a-zα-ω\s])")


def sentences(text: str) -> list[str]:
    """Return the sentences of a page: no code, no tables, no headings; a list's entry ends a sentence too."""
    text = _FENCE.sub("\n\n", _FRONT.sub("", text))
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "Code", text)
    paragraphs = [
        " ".join(lines.split())
        for lines in re.split(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. |: |\|))|(?<=\|)\n", text)
        if not lines.lstrip().startswith(("#", "|", "    "))
    ]
    found = (sentence.strip(" -*") for paragraph in paragraphs for sentence in _END.split(paragraph))
    return [sentence for sentence in found if words(sentence) > 1]


def words(sentence: str) -> int:
    """Return the number of words; a sign such as = or ≤ is none."""
    return sum(any(c.isalnum() for c in word) for word in sentence.split())


def longest(text: str) -> tuple[float, int, str]:
    """Return the mean number of words of a page's sentences, the largest, and that sentence."""
    lengths = [(words(sentence), sentence) for sentence in sentences(text)]
    worst = max(lengths, default=(0, ""))
    return sum(length for length, _ in lengths) / max(1, len(lengths)), *worst
