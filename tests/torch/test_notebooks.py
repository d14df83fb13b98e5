"""The notebooks run from top to bottom at small sizes, show what they promise, and are kept without outputs.

A cell with the tag `parameters` has the sizes; a test puts a cell with smaller ones behind it.
"""

import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SMALL = {
    "brick_wall": "updates, workers, seconds = 30, 1, 0.005",
    "language_model": "settings, characters, seconds = Settings(16, 1, 32, 4, 15), 20, 0.005",
    "override_sin": "size, settings, backend, seconds = 24, Settings(32, 2, 30), 'aot_eager', 0.005",
    "tetris": "settings, count, moves = Settings(controllers=8, games=1, elite=2, most=100), 2, 20",
}
PICTURES = {"brick_wall": 3, "language_model": 1, "override_sin": 1, "tetris": 2}
TABLES = {"brick_wall": 1, "language_model": 1, "override_sin": 1, "tetris": 0}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Where kernels find brickwork and the examples, and a cache of their own."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "BRICKWORK_CACHE_DIR": str(tmp_path_factory.mktemp("notebooks"))}


def executed(path, environment):
    """Return the cells of a notebook after a kernel has run them."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(path, as_version=4)
    at = next(number for number, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", ()))
    notebook.cells.insert(at + 1, nbformat.v4.new_code_cell(SMALL[path.stem]))
    patience = {"timeout": 300, "startup_timeout": 300, "iopub_timeout": 60, "raise_on_iopub_timeout": True}
    client = nbclient.NotebookClient(notebook, resources={"metadata": {"path": str(path.parent)}}, **patience)
    client.execute(env=environment)
    return notebook.cells


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, environment):
    cells = executed(path, environment)
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    data = [output.get("data", {}) for output in outputs]
    pictures = sum(kind.startswith("image/") for each in data for kind in each)
    assert pictures >= PICTURES[path.stem]
    tables = [each["text/html"] for each in data if "text/html" in each]
    assert len(tables) == TABLES[path.stem]
    assert all("<table" in table and "src='data:image/png" in table for table in tables)
    refused = [cell for cell in cells if "raises-exception" in cell.metadata.get("tags", ())]
    for cell in refused:
        (error,) = cell.outputs
        assert error.ename == "CompileError"
        assert f"Cell In[{cell.execution_count}], line " in error.evalue
        assert "^^^" in error.evalue
    assert len([output for output in outputs if output.output_type == "error"]) == len(refused)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path):
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        assert not cell.get("outputs"), "clear the outputs before a notebook is kept"
        assert cell.get("execution_count") is None
