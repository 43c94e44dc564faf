"""Rows of parametrised tests."""

from itertools import product

import pytest


def chequered(*columns):
    """Combine values like a chessboard's rows and columns: the black fields are for the deep profile alone.

    The white ones have every value of every column.
    """
    rows = product(*(enumerate(column) for column in columns))
    return [
        pytest.param(*(value for _, value in row), marks=pytest.mark.deep if sum(i for i, _ in row) % 2 else ())
        for row in rows
    ]
