"""What changed from one checkpoint to another, with rounding as its null; and whether they are related."""
