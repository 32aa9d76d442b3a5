"""Style, fonts and tree plots that all figures share."""
