"""Waits for modules that somebody else may import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def when_imported(name: str, action: Callable[[], None]) -> None:
    """Do something once, when a module that is not imported yet has been."""
    sys.meta_path.insert(0, _Watch(name, action))


class _Watch(MetaPathFinder):
    """Finds nothing itself; sees one module being imported, and is gone then."""

    def __init__(self, name: str, action: Callable[[], None]) -> None:
        self._name, self._action = name, action

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let the others find a module; if it is the one, act after it has run."""
        del path, target
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            run = loader.exec_module

            def run_and_act(module: ModuleType) -> None:
                run(module)
                self._action()

            loader.exec_module = run_and_act
        return spec
