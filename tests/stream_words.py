"""Write the stream's words for other tests.

Use: ``python -m tests.stream_words | RNG_test stdin32``; ``--interleaving canaries``, or another, interleaves streams.
"""

import itertools
import os
import sys

import click

from canaryproof.verify.papers.suites.stream_quality import quality
from canaryproof.verify.papers.suites.stream_quality.quality import INTERLEAVINGS, LENGTH, read_stretch


@click.command("words")
@click.option(
    "--interleaving", type=click.Choice(list(INTERLEAVINGS)), default="one canary", show_default=True, help="Order."
)
@click.option("--seed", type=click.IntRange(min=0, max=2**64 - 1), default=0, show_default=True, help="Seed.")
@click.option("--stretches", type=click.IntRange(min=1), help="Stop after so many times 2^20 words.")
def main(interleaving: str, seed: int, stretches: int | None) -> None:
    """Write the 32-bit words that coordinates are made of, binary, lowest byte first.

    They are those of canary 0, or of canaries, seeds or purposes from 0 or SEED on, interleaved; from coordinate 0 on
    until whoever reads them has enough.
    """
    tiles = LENGTH // INTERLEAVINGS[interleaving].count // quality.TILE
    try:
        for tile in itertools.islice(range(0, quality.TILES, tiles), stretches):
            sys.stdout.buffer.write(read_stretch(interleaving, (seed, 0, 0, tile))[0].astype("<u4").tobytes())
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The interpreter would flush once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
