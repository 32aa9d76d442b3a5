"""The look of all figures: style, fonts, trees."""
