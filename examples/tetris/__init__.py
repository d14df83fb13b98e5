"""Tetris, thousands of games at once, and the cross-entropy method that learns to play it."""
