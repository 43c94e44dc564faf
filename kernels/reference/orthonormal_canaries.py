"""Orthonormal canaries in mpmath: Philox with Python's integers, and the matrices written out."""

import mpmath as mp

_MASK = 2**32 - 1


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Philox 4×32-10 as Salmon et al. (2011) print it.

    Parameters
    ----------
    counter, key
        Words of 32 bits.

    Returns
    -------
    Four words of 32 bits.
    """
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c0, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * c2, 2**32)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) & _MASK, (k1 + 0xBB67AE85) & _MASK
    return c0, c1, c2, c3


def sign(seed: int, window: int, i: int, block: int = 0) -> int:
    """Sign of coordinate i of a window: one bit of the stream of purpose 2.

    Parameters
    ----------
    seed
        As for ``OrthonormalCanaries``.
    window, i
        Index of the matrix A_w or B_w, and of one of its coordinates, from 0.
    block
        Index of the vector's block, from 0.

    Returns
    -------
    1 or −1.
    """
    word, bit = divmod(i, 32)
    counter, index = divmod(word, 4)
    words = philox((counter & _MASK, counter >> 32, 64 * block + window, 2), (seed & _MASK, seed >> 32))
    return 1 - 2 * (words[index] >> bit & 1)


def rows(seed: int, count: int, dim: int, block: int = 0) -> list[int]:
    """Rows π(0), …, π(count − 1) of the matrix: Fisher and Yates with words of the stream of purpose 3.

    Parameters
    ----------
    seed, count
        As for ``OrthonormalCanaries``.
    dim, block
        Dimension of a block of the vector, and its index.

    Returns
    -------
    Distinct integers in [0, dim).
    """
    order = list(range(dim))
    for i in range(count):
        left = dim - i
        bits = (left - 1).bit_length()
        words = (
            word & ((1 << bits) - 1)
            for attempt in range(10**6)
            for word in philox((i, attempt, block, 3), (seed & _MASK, seed >> 32))
        )
        j = i + next(word for word in words if word < left)
        order[i], order[j] = order[j], order[i]
    return order[:count]


def vector(seed: int, dim: int, layers: int, row: int, block: int = 0) -> list[mp.mpf]:
    """Row ``row`` of the matrix M, as a canary.

    Parameters
    ----------
    seed, layers
        As for ``OrthonormalCanaries``.
    dim, block
        Dimension of a block of the vector, and its index.
    row
        Row of the block's matrix, 0 ≤ row < dim.

    Returns
    -------
    The canary's dim coordinates, at the precision of the context.
    """
    order = 2 ** (dim.bit_length() - 1)
    starts = [0] * layers if order == dim else [dim - order, 0] * layers
    canary = mp.matrix(1, dim)
    canary[row] = 1
    if order < dim:
        canary = _in_window(canary, seed, 2 * layers, block, 0, order)
        cosine, sine = mp.sqrt(mp.mpf(dim - order) / dim), mp.sqrt(mp.mpf(order) / dim)
        for i in range(dim - order):
            a, b = canary[i], canary[order + i]
            canary[i], canary[order + i] = cosine * a + sine * b, cosine * b - sine * a
    for window, start in reversed(list(enumerate(starts))):
        canary = _in_window(canary, seed, window, block, start, order)
    return list(canary)


def _in_window(canary: mp.matrix, seed: int, window: int, block: int, start: int, order: int) -> mp.matrix:
    """Multiply a row by a matrix A_w or B_w, element by element."""
    product = canary.copy()
    for i in range(order):
        products = ((-1) ** (i & j).bit_count() * canary[start + j] for j in range(order))
        product[start + i] = sign(seed, window, i, block) * mp.fsum(products) / mp.sqrt(order)
    return product
