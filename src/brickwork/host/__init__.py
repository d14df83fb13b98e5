"""What torch's dispatcher calls: the C ABI as data."""
