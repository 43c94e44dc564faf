import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import made_up


@pytest.fixture(scope="session")
def results():
    return made_up.results()


@pytest.fixture(scope="session")
def page(results):
    return made_up.page_of(*results, environment={"command": "canaryproof verify", "processor": "a processor"})
