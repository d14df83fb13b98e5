"""Classes of data are those of the standard library but for the time that they take."""

import copy
import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from brickwork import records

SETTINGS = [
    {},
    {"slots": True},
    {"slots": True, "eq": False},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "slots": True, "eq": False},
]


def pair(decorate):
    """Return a class and one that inherits from it."""

    @decorate
    class Base:
        place: int = dataclasses.field(default=7, compare=False, repr=False, kw_only=True)

    @decorate
    class Made(Base):
        first: float
        second: list[int] = dataclasses.field(default_factory=list, hash=False)
        third: str = "c"

        @property
        def both(self):
            return (self.first, self.third)

    return Made


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_instances_are_made_shown_compared_and_matched_alike(settings):
    ours, theirs = (pair(each.dataclass(**settings)) for each in (records, dataclasses))
    nan = float("nan")
    given = [{"first": 1.0}, {"first": nan, "third": "d", "place": 9}, {"first": nan, "third": "d"}, {"first": 2.0}]
    mine, other = ([each(**values) for values in given] for each in (ours, theirs))
    assert [repr(item) for item in mine] == [repr(item) for item in other]
    assert [[a == b for a in mine] for b in mine] == [[a == b for a in other] for b in other]
    assert [item.both for item in mine] == [item.both for item in other]
    assert [dataclasses.asdict(item) for item in mine[:1]] == [dataclasses.asdict(item) for item in other[:1]]
    assert dataclasses.replace(mine[0], third="e").third == "e"
    assert mine[0].second is not mine[3].second
    assert ours.__match_args__ == theirs.__match_args__
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)
    if ours.__hash__ is not None and settings.get("eq", True):
        assert [hash(item) for item in mine] == [hash(item) for item in other]
    assert mine[0] != other[0]
    assert hasattr(mine[0], "__dict__") == hasattr(other[0], "__dict__")


@pytest.mark.parametrize("slots", [False, True])
def test_frozen_instances_stay_as_they_are(slots):
    made = pair(records.dataclass(frozen=True, slots=slots))(1.0)
    with pytest.raises(dataclasses.FrozenInstanceError, match="'first'"):
        made.first = 2.0
    with pytest.raises(dataclasses.FrozenInstanceError, match="'first'"):
        del made.first
    assert copy.deepcopy(made) == made
    assert pair(records.dataclass(frozen=True, slots=slots))(1.0, third="d").third == "d"


def test_wrong_arguments_are_refused_at_the_first_instance_and_later():
    made = pair(records.dataclass(frozen=True, slots=True))
    for _ in range(2):
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'first'"):
            made()


def test_what_a_class_writes_itself_stays():
    @records.dataclass(frozen=True, slots=True)
    class Own:
        number: int
        seen: list[int] = dataclasses.field(init=False)

        def __post_init__(self):
            object.__setattr__(self, "seen", [self.number])

        def __hash__(self):
            return 5

        def __repr__(self):
            return "own"

    assert (hash(Own(1)), repr(Own(1)), Own(1).seen, Own(1) == Own(1)) == (5, "own", [1], True)


def test_making_a_class_compiles_nothing():
    program = """
import sys, dataclasses
sys.path.append(sys.argv[1])
import records  # by itself: an import of brickwork is one of PyTorch
made = []
sys.addaudithook(lambda event, arguments: made.append(event) if event == "compile" else None)
@records.dataclass(frozen=True, slots=True)
class Pair:
    "A pair."
    first: int
    second: int
assert not made, made
assert Pair(1, 2) == Pair(1, 2) and len(made) == 2, made
"""
    subprocess.run([sys.executable, "-c", program, str(Path(records.__file__).parent)], check=True)
