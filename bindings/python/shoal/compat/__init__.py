"""Names of older Python engines, on Shoal."""
