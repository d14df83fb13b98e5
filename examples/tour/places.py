"""Where the pictures of the tour go."""

from pathlib import Path

OUTPUT = Path("demo-output/tour")


def picture_of(name: str) -> Path:
    """Return the path of a picture, in a folder that exists."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    return OUTPUT / f"{name}.png"
