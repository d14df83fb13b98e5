"""A network of sines learns a picture, first with PyTorch's sine and then, unchanged, with another one."""
