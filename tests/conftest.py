"""What holds for all tests: hypothesis has no deadlines, since machines are shared; the disk cache is their own."""

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
