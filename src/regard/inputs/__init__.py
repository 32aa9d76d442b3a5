"""What goes in: texts, words and vectors as numbers, and the frontends that read them."""
