"""The notebooks run from top to bottom at small sizes, show what they promise, and are kept without outputs.

A cell with the tag `parameters` has the sizes; a test puts a cell with smaller ones behind it.
"""

import json
import os
from pathlib import Path

import pytest

from brickwork.config import config

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SMALL = {
    "brick_wall": "updates, workers, seconds = 8, 1, 0.005",
    "language_model": "settings, characters, seconds = Settings(16, 1, 32, 4, 6), 8, 0.005",
    "override_sin": "size, settings, backend, seconds = 24, Settings(16, 2, 10), 'aot_eager', 0.005",
    "tetris": "settings, count, moves = Settings(controllers=4, games=1, elite=2, most=40), 2, 10",
}
PICTURES = {"brick_wall": 3, "language_model": 1, "override_sin": 1, "tetris": 2}
TABLES = {"brick_wall": 1, "language_model": 1, "override_sin": 1, "tetris": 0}


def executed(paths):
    """Return the cells of each notebook after a kernel has run them: one kernel, emptied between the notebooks.

    So it imports once, and it shares the operators that the tests have compiled.
    """
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    parts = {path.stem: nbformat.read(path, as_version=4).cells for path in paths}
    whole = nbformat.v4.new_notebook()
    for name, cells in parts.items():
        at = next(number for number, cell in enumerate(cells) if "parameters" in cell.metadata.get("tags", ()))
        cells.insert(at + 1, nbformat.v4.new_code_cell(SMALL[name]))
        whole.cells += [*cells, nbformat.v4.new_code_cell("%reset -f")]
    patience = {"timeout": 300, "startup_timeout": 300, "iopub_timeout": 60, "raise_on_iopub_timeout": True}
    resources = {"metadata": {"path": str(ROOT / "notebooks")}}
    sources = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": sources, "BRICKWORK_CACHE_DIR": config.cache_dir}
    nbclient.NotebookClient(whole, resources=resources, allow_errors=True, **patience).execute(env=environment)
    return parts


def test_the_notebooks_run():
    for name, cells in executed(NOTEBOOKS).items():
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        refused = [cell for cell in cells if "raises-exception" in cell.metadata.get("tags", ())]
        for cell in refused:
            (error,) = cell.outputs
            assert error.ename == "CompileError"
            assert f"Cell In[{cell.execution_count}], line " in error.evalue
            assert "^^^" in error.evalue
        errors = [output.evalue for output in outputs if output.output_type == "error"]
        assert len(errors) == len(refused), (name, errors)
        data = [output.get("data", {}) for output in outputs]
        assert sum(kind.startswith("image/") for each in data for kind in each) >= PICTURES[name]
        tables = [each["text/html"] for each in data if "text/html" in each]
        assert len(tables) == TABLES[name]
        assert all("<table" in table and "src='data:image/png" in table for table in tables)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path):
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        assert not cell.get("outputs"), "clear the outputs before a notebook is kept"
        assert cell.get("execution_count") is None
