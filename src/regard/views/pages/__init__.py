"""The look that all pages share: one style, and the scripts that draw inspections."""

from regard.views.pages.look import SCRIPTS, STYLES, assets

__all__ = ["SCRIPTS", "STYLES", "assets"]
