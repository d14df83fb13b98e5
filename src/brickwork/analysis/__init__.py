"""Facts about IR; nothing in here changes it."""
