"""What is measured on a GPU alone: the loop programs. Questions are asked of both kinds of device (`questions.py`)."""
