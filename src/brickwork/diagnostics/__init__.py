"""How brickwork speaks: places in the source, diagnostics, errors and their rendering."""
