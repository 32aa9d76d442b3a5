"""Settings of the server: batching, limits and access."""

import re

from pydantic import Field, SecretStr, model_validator

from regard.core.options import Options

ORIGIN = re.compile(r"\*|https?://(\[[0-9a-f:]+\]|[a-z0-9._-]+)(:[0-9]+)?")
LIMITS = (
    "max_texts",
    "max_chars",
    "max_file_values",
    "max_beam",
    "max_nbest",
    "max_length",
    "max_constraints",
    "max_work",
    "max_inspect_tokens",
    "max_body_bytes",
    "max_queue",
    "max_connections",
    "max_batch_size",
    "batch_wait_ms",
    "timeout",
)


class ServeSettings(Options):
    """Settings of the server: batching, limits and access."""

    batch_wait_ms: float = Field(
        5.0,
        ge=0,
        le=1000,
        description="how long to wait for more requests before running a batch (ms)",
    )
    max_batch_size: int = Field(64, gt=0, description="maximum texts per batch")
    threads: int | None = Field(
        None,
        gt=0,
        description="batches that run at the same time, one CPU thread each (default: all cores)",
    )
    max_connections: int = Field(512, gt=0, description="maximum open connections")
    max_queue: int = Field(1024, gt=0, description="maximum queued texts")
    timeout: float = Field(30.0, gt=0, description="request timeout in seconds, queueing included")
    # Attention is quadratic in the length, and an encoder cannot be interrupted.
    max_chars: int = Field(5_000, gt=0, description="maximum characters per text")
    max_file_values: int = Field(
        25_000_000, gt=0, description="maximum pixels or samples of a file"
    )
    max_texts: int = Field(256, gt=0, description="maximum texts or files per request")
    max_body_mb: float = Field(4.0, gt=0, description="maximum request body in MB")
    max_beam: int = Field(32, gt=0, description="maximum beam size a request may set")
    max_nbest: int = Field(32, gt=0, description="maximum predictions per text")
    max_length: int = Field(2_000, gt=0, description="maximum output length a request may set")
    max_constraints: int = Field(32, gt=0, description="maximum required or banned words")
    max_work: int = Field(
        1_000_000, gt=0, description="maximum steps x hypotheses per text, constraints included"
    )
    max_inspect_tokens: int = Field(
        200, gt=0, description="maximum tokens of source and target for /inspect"
    )
    api_key: SecretStr | None = Field(None, description="API key that clients must send")
    cors_origins: tuple[str, ...] = Field(
        (), description="origins allowed to call the API from a browser"
    )
    allowed_hosts: tuple[str, ...] | None = Field(
        None, description="accepted names in the Host header; None: any"
    )

    @model_validator(mode="after")
    def _check_consistent(self) -> "ServeSettings":
        if self.max_texts > self.max_queue:
            raise ValueError(
                f"max_texts {self.max_texts} exceeds max_queue {self.max_queue}: "
                "such a request would never fit"
            )
        for origin in self.cors_origins:
            if not ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"CORS origin {origin!r}: expected lower case without a path, such as "
                    "https://page.example, http://localhost:3000 or *"
                )
        if "*" in self.cors_origins and self.api_key is not None:
            raise ValueError("CORS origin '*' allows every page; with an API key, list the origins")
        return self

    @property
    def max_body_bytes(self) -> int:
        """Return the maximum size of a request body in bytes."""
        return int(self.max_body_mb * 1_000_000)

    def limits(self) -> dict[str, float]:
        """Return the limits that `GET /limits` reports to clients."""
        return {name: getattr(self, name) for name in LIMITS}
