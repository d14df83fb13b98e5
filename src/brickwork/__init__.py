"""Plain Python loops over tensor elements become native PyTorch operators."""
