import sys
from pathlib import Path

# ``plain`` and ``tiny`` stand beside the tests, and processes that tests start import them too.
sys.path.insert(0, str(Path(__file__).parent))
