import os
from pathlib import Path

import pytest

from canaryproof.verify.audit.files.errors import InputError


@pytest.fixture
def refusal():
    """Call a loader on a place and return what it says against what is there, without the place's own name."""

    def said(load, place, *arguments):
        with pytest.raises(InputError) as caught:
            load(place, *arguments)
        message = caught.value.message
        assert "\n" not in message
        assert len(message) < 400
        assert message.startswith(str(place))
        return message.removeprefix(str(place)).lstrip("/")

    return said


@pytest.fixture
def real_data():
    """The folder with ``mnist/`` and ``shakespeare/``, if there is one."""

    def folder(name):
        place = Path(os.environ.get("CANARYPROOF_DATA", ""), name)
        if "CANARYPROOF_DATA" not in os.environ or not place.is_dir():
            pytest.skip(f"CANARYPROOF_DATA names no folder with {name}/")
        return place

    return folder
