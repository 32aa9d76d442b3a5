"""MIME types of images, as requests and data URLs declare them."""

from regard.core.errors import UserError

MEDIA = {  # MIME types and the formats of Pillow
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/bmp": "BMP",
    "image/webp": "WEBP",
    "image/tiff": "TIFF",
    "image/x-portable-anymap": "PPM",
}
FORMATS = tuple(MEDIA.values())


def check_media(found: str, media: str | None, name: str) -> None:
    """Raise UserError if an image of this format is declared as another MIME type.

    media: the declared type; None: none is declared.
    """
    if media is None or MEDIA[media] == found:
        return
    content = next(one for one, known in MEDIA.items() if known == found)
    raise UserError(
        f"{name}: declared as {media}, but the content is {content}",
        help=f"declare the type as {content}",
    )
