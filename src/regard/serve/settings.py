"""The settings of a server: how requests are gathered, and what none may exceed."""

import re

from pydantic import Field, SecretStr, model_validator

from regard.core.options import Options

ORIGIN = re.compile(r"\*|https?://(\[[0-9a-f:]+\]|[a-z0-9._-]+)(:[0-9]+)?")


class ServeSettings(Options):
    """How requests are gathered into batches, and what none of them may exceed."""

    wait: float = Field(5.0, ge=0, le=1000, description="milliseconds in which others join")
    batch: int = Field(64, gt=0, description="texts that run together, at most")
    threads: int | None = Field(
        None, gt=0, description="processors that run models; else half of them"
    )
    connections: int = Field(512, gt=0, description="connections that are open")
    queue: int = Field(1024, gt=0, description="texts that wait")
    seconds: float = Field(30.0, gt=0, description="time of a request")
    # Attention takes time by the square of the length, and an encoder cannot be stopped halfway.
    characters: int = Field(5_000, gt=0, description="characters of a text")
    texts: int = Field(256, gt=0, description="texts of a request")
    body: float = Field(4.0, gt=0, description="megabytes of a request")
    beam: int = Field(32, gt=0, description="width of a beam")
    nbest: int = Field(32, gt=0, description="answers to a text, at most")
    length: int = Field(2_000, gt=0, description="tokens of an answer that can be asked for")
    wishes: int = Field(32, gt=0, description="words that must, or may not, be in an answer")
    max_inspect_tokens: int = Field(200, gt=0, description="tokens a side of what is inspected")
    api_key: SecretStr | None = Field(None, description="what a client must know")
    cors: tuple[str, ...] = Field((), description="origins whose pages may ask")
    hosts: tuple[str, ...] | None = Field(
        None, description="names that a client may call the server by; None: any"
    )

    @model_validator(mode="after")
    def _fits(self) -> "ServeSettings":
        if self.texts > self.queue:
            raise ValueError(
                f"texts {self.texts} is above queue {self.queue}: such a request would never fit"
            )
        for origin in self.cors:
            if not ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"cors {origin!r}: as browsers write it, in small letters and without a path "
                    "expected: https://page.example, http://localhost:3000, or *"
                )
        if "*" in self.cors and self.api_key is not None:
            raise ValueError("cors '*' lets every page ask; with an API key, name the origins")
        return self

    @property
    def bytes(self) -> int:
        """The most bytes of a body."""
        return int(self.body * 1_000_000)

    def limits(self) -> dict[str, float]:
        """What a client may know."""
        names = ("texts", "characters", "beam", "nbest", "length", "wishes", "max_inspect_tokens")
        rest = ("seconds", "queue", "connections", "batch", "wait")
        return {name: getattr(self, name) for name in (*names, *rest)} | {"bytes": self.bytes}
