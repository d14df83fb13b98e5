import struct

import pytest

from brickwork.codegen.builder import FailureSite
from brickwork.codegen.convention import RECORD_SITE, RECORD_VALUES, RECORD_WORDS
from brickwork.diagnostics.location import NOWHERE, Location
from brickwork.host.failure import exception_of
from brickwork.ir.dtypes import BOOL, FLOAT64, INT64, UINT64
from brickwork.ir.nodes import Failure, FailureKind

HERE = Location(file="kernel.py", line=12, column=4, end_line=12, end_column=9, function="f")


def record(site, *words):
    result = [0] * RECORD_WORDS
    result[RECORD_SITE] = site
    result[RECORD_VALUES : RECORD_VALUES + len(words)] = words
    return result


def test_values_are_read_by_their_types():
    half = struct.unpack("<Q", struct.pack("<d", 0.5))[0]
    failure = Failure(FailureKind.INDEX, "{} {} {} {}")
    site = FailureSite(failure, (INT64, UINT64, FLOAT64, BOOL), HERE)
    error = exception_of(record(1, 2**64 - 3, 2**64 - 3, half, 1), (site, site), "ns::op")
    assert type(error) is IndexError
    assert str(error) == "-3 18446744073709551613 0.5 True (ns::op, kernel.py:12)"


@pytest.mark.parametrize("kind", FailureKind)
def test_every_kind_has_its_exception(kind):
    error = exception_of(record(0), [FailureSite(Failure(kind, "no"), (), NOWHERE)], "ns::op")
    assert type(error).__name__ == kind.value
    assert error.args == ("no (ns::op)",)
