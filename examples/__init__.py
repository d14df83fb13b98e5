"""Programs that show brickwork at work."""
