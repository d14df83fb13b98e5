"""What tests observed is kept from run to run, as long as tests and functions stay as they are."""

from array import array
from types import SimpleNamespace

from tests.mutate.measured import Measurement, observed, read, write
from tests.mutate.mutants import marked_functions

SOURCE = """
@legality
def one(x):
    return x > 1

@hazard
def two(x):
    return x > 2
"""


def test_what_is_kept_holds_for_the_same_tests_and_functions(tmp_path):
    source, test, kept = tmp_path / "judge.py", tmp_path / "test_judge.py", tmp_path / "kept"
    source.write_text(SOURCE)
    test.write_text("1")
    one, two = marked_functions(tmp_path)
    items = [SimpleNamespace(nodeid=name, path=test) for name in ("first", "second")]
    seen = array("L", [observed(0, 1, True), observed(1, 3, False)])
    write(kept, (one, two), items, {1: Measurement("passed", 0.5, seen)})
    assert read(kept, (one, two), items) == {1: Measurement("passed", 0.5, seen)}
    assert read(kept, (two,), items[1:]) == {0: Measurement("passed", 0.5, array("L", [observed(0, 3, False)]))}
    source.write_text(SOURCE.replace("x > 2", "x > 3"))
    assert read(kept, marked_functions(tmp_path), items) == {}
    other = tmp_path / "test_other.py"
    other.write_text("2")
    assert read(kept, (one, two), [SimpleNamespace(nodeid="second", path=other)]) == {}
