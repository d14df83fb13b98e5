"""What `op.explain()` says of a GPU for given arguments: which versions of loops they choose, and what is launched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from brickwork.runtime.artifact import Artifact
from brickwork.runtime.launches import Argument, Followed, LaunchFigures, followed, pieces_of


def text_for(artifact: Artifact, arguments: Sequence[Argument]) -> str:
    """Return an explanation for arguments, which are given as sizes and numbers."""
    found = followed(pieces_of(artifact), arguments)
    return "\n".join((artifact.explanation.text(found.taken), *_lines(found)))


def _lines(found: Followed) -> Iterator[str]:
    yield "launches for these arguments"
    several: dict[str, list[LaunchFigures]] = {}
    for launch in found.launches:
        if launch.blocks != 0:
            several.setdefault(launch.kernel, []).append(launch)
    for name, launches in several.items():
        yield f"  {name}: {_described(launches)}"
    if not found.complete:
        yield "  and others, which depend on elements or are very many"
    elif not several:
        yield "  none"


def _described(launches: Sequence[LaunchFigures]) -> str:
    """Return the times, grid and updates of the launches of one kernel, of the first where they differ."""
    first = launches[0]
    parts = [f"{len(launches)} times"] if len(launches) > 1 else []
    threads = "1 thread" if first.threads == 1 else f"{first.threads} threads"
    parts.append(f"{first.blocks} block{'' if first.blocks == 1 else 's'} of {threads}")
    parts += [f"{first.parts} of them are a cluster"] if first.parts > 1 else []
    names = ", ".join(f"'{name}'" for name in first.atomic)
    parts += [f"updates of {names} are atomic"] if names else []
    return ", ".join(parts)
