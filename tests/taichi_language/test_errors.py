"""What is wrong is told with Taichi's classes and the user's line, and ends no process."""

import runpy

import pytest
import torch

import brickwork as bw
import brickwork.taichi as ti


@pytest.fixture(autouse=True)
def begin():
    ti.init(arch=ti.cpu)
    yield
    ti.reset()


def test_an_access_beyond_the_end_is_refused_and_writes_nothing():
    @ti.kernel
    def run(x: ti.types.ndarray(), i: ti.i32):
        x[i] = 7

    memory = torch.zeros(8, dtype=torch.int32)
    for place in (4, -1):
        with pytest.raises(IndexError, match=r"test_errors\.py"):
            run(memory[:4], place)
    assert memory.tolist() == [0] * 8


def test_a_division_by_zero_is_an_error():
    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        return 5 // a + 5 % a

    assert run(2) == 3
    with pytest.raises(ZeroDivisionError):
        run(0)


def test_an_assertion_says_what_does_not_hold():
    @ti.kernel
    def run(a: ti.i32):
        assert a > 2, f"a is {a}"

    run(3)
    with pytest.raises(AssertionError, match="a is 1"):
        run(1)


def _loop_variable():
    @ti.kernel
    def run():
        for i in range(3):
            i += 2

    run()


def _argument():
    @ti.kernel
    def run(a: ti.i32):
        a += 2

    run(1)


def _break():
    @ti.kernel
    def run():
        for _ in range(3):
            break

    run()


def _step():
    @ti.kernel
    def run():
        for _ in range(0, 6, 2):
            pass

    run()


def _nested_kernel():
    @ti.kernel
    def inner():
        pass

    @ti.kernel
    def run():
        inner()

    run()


@pytest.mark.parametrize("wrong", [_loop_variable, _argument, _break, _step, _nested_kernel])
def test_statements_that_kernels_lack(wrong):
    with pytest.raises(ti.TaichiSyntaxError) as error:
        wrong()
    assert isinstance(error.value, SyntaxError)
    assert "test_errors.py" in str(error.value)


def test_types_that_do_not_go_together():
    @ti.kernel
    def bits(a: ti.f32) -> ti.f32:
        return a & 1

    @ti.kernel
    def whole(a: ti.i32) -> ti.f32:
        return ti.floor(a)

    with pytest.raises(ti.TaichiTypeError, match="unsupported operand type"):
        bits(1.0)
    with pytest.raises(ti.TaichiTypeError, match="takes real inputs only"):
        whole(1)


def test_the_mark_under_a_line_counts_what_a_terminal_shows():
    @ti.kernel
    def run() -> ti.i32:
        return len("粒子é") + "é".missing()

    with pytest.raises(ti.TaichiCompilationError) as error:
        run()
    line, mark = str(error.value).split("\n")[2:4]
    assert line == '        return len("粒子é") + "é".missing()'
    assert mark == " " * (line.index('"é"') + 2) + "^" * len('"é".missing()')


def test_arguments_are_checked_when_they_are_passed():
    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        return a

    assert run(2**31 + 5) == -2147483643
    with pytest.raises(ti.TaichiRuntimeTypeError):
        run(1.5)


def test_what_is_not_supported_is_refused_by_name():
    with pytest.raises(ti.TaichiCompilationError, match="pointer"):
        ti.root.pointer(ti.i, 4)
    with pytest.raises(AttributeError, match="GUI"):
        ti.GUI


def test_a_race_runs_in_order():
    @ti.kernel
    def run(x: ti.types.ndarray()):
        for i in range(1, 100):
            x[i] = x[i - 1] + 1

    x = torch.zeros(100, dtype=torch.int32)
    with pytest.warns(bw.BrickworkWarning, match="not independent"):
        run(x)
    assert x.tolist() == list(range(100))
    ti.init(arch=ti.cpu, races="error")
    with pytest.raises(bw.RaceError):
        run(x)


@pytest.mark.parametrize(("text", "message"), [
    ("print('{0} {1}'.format(1, 2, 3))", r"Expected 2 positional argument\(s\), but received 3"),
    ("print('{} {}'.format(1))", r"Expected 2 positional argument\(s\), but received 1"),
    ("print(''.format(k=1))", "Keyword 'k' not used"),
    ("print('{k}'.format())", "Keyword 'k' not found"),
    ("print('%d' % (x, x))", "not all arguments converted"),
    ("print('%d %d' % x)", "not enough arguments"),
    ("print(ti.Vector([x, x])[:-1])", "Negative indices are not supported"),
    ("a = 1; a = ti.static(2)", "Recreating variables is not allowed"),
    ("a = ti.static([1, 2]); a[0] = ti.static(2)", "Static assign cannot be used on elements"),
    ("x: ti.i32 = 1", 'Kernel argument "x" is immutable'),
    ("ti.polar_decompose(ti.Matrix([[x]]))", "only supports 2D and 3D matrices"),
])  # fmt: skip
def test_what_is_refused_says_so(text, message, tmp_path):
    file = tmp_path / "kernel.py"
    body = text.replace("; ", "\n    ")
    file.write_text(f"import brickwork.taichi as ti\n\n@ti.kernel\ndef run(x: ti.i32):\n    {body}\n")
    names = runpy.run_path(str(file))
    with pytest.raises(ti.TaichiCompilationError, match=message):
        names["run"](1)
