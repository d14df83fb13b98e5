"""Files about the language, and not about machine code, have `pytestmark = pytest.mark.usefixtures("quick")`."""

import pytest

from support.quick_code import quick_code


@pytest.fixture(scope="module")
def quick():
    with quick_code():
        yield
