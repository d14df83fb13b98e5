"""Whether a pass changes a kernel, and that what the kernel does, and how it fails, stays the same."""

from collections.abc import Callable, Sequence

from brickwork.ir.dtypes import INT64
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Kernel, Launch, Node, Program
from brickwork.ir.verify import verify_kernel
from brickwork.ir.walk import rewrite
from support.lowering import Nested, memory, nested, program_of

X = memory([2.0, -1.0, 3.0, -2.5, 0.5, 4.0])
Y = memory([1.0] * 6)
N = memory([3, 1, 4, 1, 5, 2], INT64)
M = memory([[float((3 * i + 5 * j) % 7 - 3) for j in range(6)] for i in range(6)])
GIVEN = (X, Y, N, M)
Change = Callable[[Kernel], Kernel]


def outcome(program: Program, numbers: Sequence[int]) -> tuple[list[Nested], str]:
    """What a program leaves in its tensors, and how it fails."""
    given = [Memory([*item.data], item.sizes, item.strides, item.dtype, 0) for item in GIVEN]
    failure = ""
    try:
        run_program(program, [*given, *numbers])
    except (IndexError, ZeroDivisionError) as error:
        failure = repr(error)
    return [*map(nested, given)], failure


def changed(function: Callable[..., object], change: Change, *numbers: int) -> bool:
    """Whether a pass changes the kernel of a function; what it does stays the same."""
    program = program_of(function, *GIVEN, *numbers)
    found: list[bool] = []

    def visit(node: Node) -> Node:
        if not isinstance(node, Launch):
            return node
        kernel = change(node.kernel)
        verify_kernel(kernel)
        found.append(kernel.body != node.kernel.body)
        return Launch(kernel=kernel)

    other = rewrite(program, visit)
    assert outcome(other, numbers) == outcome(program, numbers)
    return any(found)
