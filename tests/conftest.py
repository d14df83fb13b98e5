"""What holds for all tests: hypothesis without deadlines, since the machine may be shared; a disk cache of their own."""

import pytest
from hypothesis import settings

from brickwork.config import config

settings.register_profile("suite", deadline=None)
settings.load_profile("suite")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Keep the user's cache out of the tests, and the tests out of the user's cache."""
    with config.override(cache_dir=str(tmp_path_factory.mktemp("cache"))):
        yield
