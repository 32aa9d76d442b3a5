"""One HTML file of an inspection: style, scripts and data inside, nothing from the network."""

import json
from html import escape
from string import Template
from typing import Any

from regard.views.inspection.pack import packed
from regard.views.pages import SCRIPTS, STYLES, assets
from regard.views.pages.policy import policy

PAGE = Template("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<link rel="icon" href="data:,">
<style>$style</style>
</head>
<body>
<main>
<header class="inspected">
<div class="title" id="title">
<h1 dir="auto">$source</h1>
<p class="came" dir="auto">$target</p>
</div>
<div class="switches" id="switches"></div>
</header>
<div class="inspection-facts" id="facts"></div>
<div id="inspection"><noscript><p>The views are drawn by a script in this file.</p></noscript></div>
<footer id="foot"></footer>
</main>
<script type="application/json" id="inspection-data">$data</script>
<script>$script</script>
</body>
</html>
""")


def inspection_page(inspection: dict[str, Any]) -> str:
    """The page of an inspection (`Inspection.as_dict()`), complete in one text."""
    style = f"\n{assets(STYLES)}\n"
    script = f"\n{assets((*SCRIPTS, 'standalone.js'))}\n"
    source, target = inspection["source"]["text"], inspection["target"]["text"]
    return PAGE.substitute(
        policy=policy(script, style),
        title=_shown(f"{inspection['model']['name']}: {source or target}"),
        source=_shown(source or target),
        target=_shown(target if source else ""),
        style=style,
        script=script,
        data=_data(packed(inspection)),
    )


def _shown(text: str) -> str:
    """Text as HTML; lone surrogates, which UTF-8 has not, are question marks."""
    return escape(text.encode("utf-8", "replace").decode("utf-8"))


def _data(value: dict[str, Any]) -> str:
    """JSON that no text can end: with "<" escaped, neither </script> nor <!-- can occur.

    Lone surrogates are escaped too, so that the page can be written as UTF-8.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = "".join(f"\\u{ord(one):04x}" if "\ud800" <= one <= "\udfff" else one for one in text)
    return text.replace("<", "\\u003c")
