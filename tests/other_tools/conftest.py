"""The folder ``other_tools`` is no installed package: its tests find it in the checkout."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
