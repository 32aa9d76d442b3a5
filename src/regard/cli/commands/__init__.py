"""What the commands do, without the parsing of their words."""
