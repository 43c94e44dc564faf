import sys
from pathlib import Path

# ``made_results`` stands beside the tests.
sys.path.insert(0, str(Path(__file__).parent))
