"""A tile is learned from pictures of a wall: padding in an input pipeline, and the gradient back to the tile."""
