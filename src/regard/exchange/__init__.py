"""Models to and from other toolkits and engines."""
