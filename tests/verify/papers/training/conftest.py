import sys
from pathlib import Path

# ``plain``, ``tiny`` and what makes data stand beside the tests, and processes that tests start import them too.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "data")]
