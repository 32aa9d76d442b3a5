"""Assets of the HTML pages: shared style, and the scripts that render inspections."""

from regard.views.pages.page_assets import SCRIPTS, STYLES, assets

__all__ = ["SCRIPTS", "STYLES", "assets"]
