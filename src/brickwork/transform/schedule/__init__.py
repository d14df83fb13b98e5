"""How loops are run: schedules as data, and their application."""
