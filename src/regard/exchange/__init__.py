"""Import of models from other toolkits, and export to other inference engines."""
