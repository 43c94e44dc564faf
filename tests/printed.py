"""Numbers of a printed text."""

import re


def numbers(text: str) -> list[str]:
    """List the numbers of a text as they are printed, without commas between thousands; no exponents such as ²."""
    whole = re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", text)
    return [number.rstrip(",").replace(",", "") for number in whole]
