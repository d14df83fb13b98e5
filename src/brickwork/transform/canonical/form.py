"""The passes that bring kernels to canonical form, in order, with the reason for the order.

1. coalesce: temporaries of simultaneous assignments go, so that a statement assigns what the user assigned.
   with_nested_conditions: before searches are looked for, of which there are some under a condition.
2. without_carried_copies: sums over several loops are one variable's.
3. propagate_copies: what repeats a variable or a literal becomes that; loops then start where the literal says.
   with_whole_counters: variables of float64 that count in ones are integers for what counts.
4. with_best_values, which looks for temporaries and leaves them to be taken out.
   with_ends: loops that nothing leaves any more count.
   count: loops that count become loops with an index, and variables that count along become sums with it. Inner
   loops come first: what they add in all is what an iteration of the loop around them adds.
   over_places: loops over the length of a row go over its places.
5. propagate_copies again: the sums begin with what the variables began with.
6. without_dead_assignments: what nothing reads any more.
7. without_sure_checks: loops are known then.
8. without_choices, which checks would be in the way of.
9. fold_indices, after which nests are perfect that can be.
10. with_own_ranges, once nothing more goes.
11. nests_of_digits: flat loops become nests, whose ends say what the checks ask; then 5 to 9 again.
12. name_sizes, for what is scheduled: the same, and steps that are sizes.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from brickwork.ir.nodes import Assign, Break, Kernel, Launch, Node, Program
from brickwork.ir.walk import rewrite, statements
from brickwork.transform.canonical.best_values import with_best_values
from brickwork.transform.canonical.carried_copies import without_carried_copies
from brickwork.transform.canonical.choices import with_nested_conditions, without_choices
from brickwork.transform.canonical.coalesce import coalesce
from brickwork.transform.canonical.copies import propagate_copies
from brickwork.transform.canonical.counting import count
from brickwork.transform.canonical.dead import without_dead_assignments
from brickwork.transform.canonical.digits import nests_of_digits
from brickwork.transform.canonical.divisors import without_sure_checks
from brickwork.transform.canonical.ends import with_ends
from brickwork.transform.canonical.live_ranges import with_own_ranges
from brickwork.transform.canonical.places import fold_indices
from brickwork.transform.canonical.row_places import over_places
from brickwork.transform.canonical.sizes import name_sizes
from brickwork.transform.canonical.whole_counters import with_whole_counters
from brickwork.transform.free_variables import with_body
from brickwork.transform.scratch import Names, names_of


def canonical(program: Program, *, sizes: bool = False, given: str = "") -> Program:
    """Return the program with its kernels in canonical form; with `sizes`, the host gives them those it computes.

    Loops that a `given` schedule names are there as the user wrote them.
    """
    names = names_of(program)
    named = frozenset(re.findall(r"\w+", given))

    def visit(node: Node) -> Node:
        return replace(node, kernel=canonical_kernel(node.kernel, names, named)) if isinstance(node, Launch) else node

    program = rewrite(program, visit)
    return replace(program, body=name_sizes(program.body, names)) if sizes else program


def canonical_kernel(kernel: Kernel, names: Names, named: Collection[str] = ()) -> Kernel:
    """Return a kernel in canonical form, but for loops that are to keep their names."""
    body = kernel.body
    if any(isinstance(node, Assign | Break) for node in statements(body)):
        body = propagate_copies(without_carried_copies(with_nested_conditions(coalesce(body))))
        body = with_whole_counters(body, kernel.scalars, names)
        # Elements that are remembered may change with tensors that share memory with theirs.
        body = with_ends(body if kernel.may_alias else with_best_values(body, names))
        body = count(body, names, may_alias=kernel.may_alias)
        body = body if kernel.may_alias else over_places(body, names)
        body = without_dead_assignments(propagate_copies(body))
    body = with_own_ranges(fold_indices(without_choices(without_sure_checks(body))), names)
    nests = nests_of_digits(body, kernel.facts, names, named)
    if nests != body:
        body = without_dead_assignments(propagate_copies(nests))
        body = fold_indices(without_choices(without_sure_checks(body)))
    return kernel if body == kernel.body else with_body(kernel, body, kernel.facts)
