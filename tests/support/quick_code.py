"""Machine code without LLVM's passes, for tests that ask what operators do, and not how.

It is made in a third of the time. `tests/fuzz`, and `tests/cpu` but where files use `quick`, test optimised code of the
same emitters. The ready operators are optimised in all tests: a process keeps their code from one file of tests to the
next.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import brickwork
from brickwork.codegen.llvm import translate_module
from brickwork.runtime import compile as compilation
from brickwork.runtime import stages
from brickwork.target.target import Target
from brickwork.transform.derivation import origin_of

_OWN = str(Path(brickwork.__file__).parent)


@contextmanager
def quick_code() -> Generator[None]:
    """Compile without passes for the time of a `with` block; entries of the cache are told apart."""
    build, optimised, key = stages.build, stages.compile_in_parts, compilation.environment_key
    current = threading.local()

    def marked(definition: Any, *arguments: Any, **named: Any) -> Any:
        current.ours = origin_of(definition).loc.file.startswith(_OWN)
        return build(definition, *arguments, **named)

    def made(text: str, target: Target) -> bytes:
        return optimised(text, target) if getattr(current, "ours", True) else translate_module(text, target)

    def told_apart(target: Target) -> tuple[str, ...]:
        return (*key(target), "without passes")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "build", marked)
        patch.setattr(stages, "compile_in_parts", made)
        patch.setattr(compilation, "environment_key", told_apart)
        yield
