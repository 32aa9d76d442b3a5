"""Pictures in reports: examples per label, and the most frequent confusions with their images."""

from collections.abc import Sequence
from html import escape
from typing import Any

from regard.storage.run_folder import Record
from regard.views.report.html_parts import table

PREFIX = "data:image/png;base64,"
USER = 'dir="auto" translate="no"'


def picture(url: object, name: str) -> str:
    """Return an image element; "" unless the URL is that of a PNG file inside the page."""
    if not isinstance(url, str) or not url.startswith(PREFIX):
        return ""
    text = escape(name)
    return f'<img class="example" translate="no" src="{escape(url)}" alt="{text}" title="{text}">'


def mistakes_table(groups: Sequence[Record]) -> str:
    """Return a table of confusions of two labels, each with its most confident mistakes."""
    rows = []
    for group in groups:
        images = "".join(
            picture(one.get("image"), f"{one.get('name')} ({one.get('confidence')} %)")
            for one in group.get("images") or []
        )
        expected, predicted = (escape(str(group.get(key))) for key in ("expected", "predicted"))
        rows.append(
            f"<tr><td {USER}>{expected}</td><td {USER}>{predicted}</td>"
            f'<td class="number">{group.get("count")}</td><td class="pictures">{images}</td></tr>'
        )
    if not rows:
        return ""
    head = '<th>expected</th><th>predicted</th><th class="number">examples</th>'
    title = "<h3>Most frequent confusions, most confident first</h3>"
    return title + table("mistakes", f"{head}<th>images</th>", rows)


def label_pictures(pictures: Any) -> str:
    """Return a table with some examples of each label. pictures: data URLs by label."""
    if not isinstance(pictures, dict) or not pictures:
        return ""
    rows = []
    for label, urls in pictures.items():
        images = "".join(picture(url, str(label)) for url in urls)
        rows.append(
            f'<tr><td {USER}>{escape(str(label))}</td><td class="pictures">{images}</td></tr>'
        )
    return "<h3>First examples of each label</h3>" + table(
        "mistakes", "<th>label</th><th>images</th>", rows
    )
