"""Quotients in what is computed modulo 2**32, as places in memory are: their own arithmetic stays wide."""

from brickwork.codegen.builder import Known, Module
from brickwork.codegen.division import floor_division, word_quotient
from brickwork.codegen.narrowing import NarrowingWriter


def written(divide) -> str:
    """Return what is written for a quotient of two arguments in a place in memory."""
    module = Module()
    writer = NarrowingWriter(module, "f", "i64", (("i64", "left"), ("i64", "right")))
    for name in ("%left", "%right"):
        writer.learn(name, Known(0, 2**28))
    with writer.modular():
        divide(writer)
        after = writer.emit("mul i64 %left, %right")
    writer.emit(f"add i64 {after}, {after}")
    return "\n".join(writer._lines)


def by_reciprocal(writer: NarrowingWriter) -> None:
    word_quotient(writer, *(writer.emit(f"trunc i64 {text} to i32") for text in ("%left", "%right")), "7")


def test_the_product_with_a_reciprocal_is_wide() -> None:
    text = written(by_reciprocal)
    (product,) = [line for line in text.splitlines() if "mul i64" in line]
    assert text.index("lshr i64") > text.index(product)


def test_places_are_narrow_again_after_a_quotient() -> None:
    text = written(lambda writer: floor_division(writer, "%left", "%right"))
    assert "mul i64" not in text.splitlines()[-1]
    assert "mul i32" in text
