"""Request and response schemas, as OpenAPI describes them."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    StrictBool,
    StrictStr,
    WithJsonSchema,
    create_model,
)

from regard.serve.settings import ServeSettings


def _to_int(value: Any) -> Any:
    """Return an integral float such as 5.0 as int, since JSON does not distinguish them."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


INT64_END = 2**63
OMITTED: Any = None  # default of a field that must not be null
EXAMPLE_PNG = (  # one black pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
Count = Annotated[int, Strict(), BeforeValidator(_to_int)]
Int64 = Annotated[int, Strict(), Field(ge=-INT64_END, lt=INT64_END)]
FiniteFloat = Annotated[float, Strict(), Field(allow_inf_nan=False)]
SettingValue = StrictBool | Int64 | FiniteFloat | StrictStr | None
# Report only the first error of a list: a million errors take many seconds.
FAIL_FAST: Any = Field(fail_fast=True)


class RequestBody(BaseModel):
    """A request body: no extra fields, no type conversions."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class ModelRequest(RequestBody):
    """A request to a model."""

    model: StrictStr | None = Field(None, description="model name; default: the first model")
    search: dict[str, SettingValue] = Field(
        default_factory=dict, description="search settings; GET /models lists them"
    )


class ConstraintsSchema(RequestBody):
    """Constraints on one prediction."""

    prefix: StrictStr = Field("", description="the prediction starts with this text")
    require: list[StrictStr] = Field(default_factory=list, description="required words")
    ban: list[StrictStr] = Field(default_factory=list, description="banned words")


def _either(*names: str) -> Callable[[dict[str, Any]], None]:
    """Return a function that changes a JSON schema: exactly one of these fields is required."""

    def change(schema: dict[str, Any]) -> None:
        for name in names:
            schema["properties"][name].pop("default", None)
        schema["oneOf"] = [{"required": [name]} for name in names]

    return change


class FileSchema(RequestBody):
    """A file, such as an image."""

    data: StrictStr = Field(description="bytes of the file in base64", examples=[EXAMPLE_PNG])
    type: StrictStr = Field(
        description="MIME type; GET /models lists those that a model reads", examples=["image/png"]
    )


class PredictRequest(ModelRequest):
    """Texts or files to predict: either `texts` or `inputs`."""

    model_config = ConfigDict(json_schema_extra=_either("texts", "inputs"))
    texts: list[StrictStr] = Field(
        OMITTED,
        min_length=1,
        description="input texts, each in the format of one line of an input file",
        examples=[["attention"]],
    )
    inputs: list[FileSchema] = Field(
        OMITTED, min_length=1, description="input files, for models that read images"
    )
    nbest: Count = Field(1, ge=1, description="predictions per text")
    constraints: list[ConstraintsSchema] | None = Field(
        None, description="constraints, one item per text"
    )
    return_alignment: StrictBool = Field(
        False, description="return attention to the source for each token"
    )


class SourceRequest(ModelRequest):
    """A request with one source: either `text` or `input`."""

    model_config = ConfigDict(json_schema_extra=_either("text", "input"))
    text: StrictStr = Field(OMITTED, description="input text", examples=["attention"])
    input: FileSchema = Field(OMITTED, description="input file, for models that read images")


class StreamRequest(SourceRequest):
    """A text or file whose prediction is streamed."""

    constraints: ConstraintsSchema | None = None


class InspectRequest(SourceRequest):
    """A text or file to inspect."""

    target: StrictStr | None = Field(
        None, description="forced decoding: explain this output instead of the model's own"
    )


class AlternativesRequest(SourceRequest):
    """A text or file, and the prefix whose next tokens are listed."""

    constraints: ConstraintsSchema = Field(default_factory=ConstraintsSchema)
    top: Count = Field(5, ge=1, le=100, description="number of next tokens")


def request_schemas(
    settings: ServeSettings, models: list[str], search: dict[str, Any]
) -> dict[str, type[ModelRequest]]:
    """Return the request schemas by path, with this server's limits, models and search settings."""
    text: Any = Annotated[StrictStr, Field(max_length=settings.max_chars)]
    word: Any = Annotated[text, Field(min_length=1)]
    words: Any = Annotated[list[word], FAIL_FAST, Field(max_length=settings.max_constraints)]
    texts: Any = Annotated[list[text], FAIL_FAST, Field(max_length=settings.max_texts)]
    files: Any = Annotated[list[FileSchema], FAIL_FAST, Field(max_length=settings.max_texts)]
    constraints: Any = _with_types(ConstraintsSchema, prefix=text, require=words, ban=words)
    names = {"anyOf": [{"enum": models}, {"type": "null"}]}
    common = {
        "model": Annotated[StrictStr | None, WithJsonSchema(names)],
        "search": Annotated[dict[str, SettingValue], WithJsonSchema(search)],
        "text": text,
    }
    count = {"type": "integer", "minimum": 1, "maximum": settings.max_nbest}
    per_text = {
        "texts": texts,
        "inputs": files,
        "nbest": Annotated[Count, WithJsonSchema(count)],
        "constraints": Annotated[list[constraints], FAIL_FAST] | None,
    }
    return {
        "/predict": _with_types(PredictRequest, **common, **per_text),
        "/stream": _with_types(StreamRequest, **common, constraints=constraints | None),
        "/inspect": _with_types(InspectRequest, **common, target=text | None),
        "/alternatives": _with_types(AlternativesRequest, **common, constraints=constraints),
    }


def _with_types(schema: type[RequestBody], **types: Any) -> Any:
    """Return a copy of a schema in which these fields, if present, have other types."""
    known = schema.model_fields
    fields: Any = {name: (kind, known[name]) for name, kind in types.items() if name in known}
    return create_model(schema.__name__, __base__=schema, __doc__=schema.__doc__, **fields)


class NBestItem(BaseModel):
    """One item of the n-best list."""

    text: str
    score: float | None = None
    probability: float | None = Field(None, description="of the whole text, EOS included")


class PredictionSchema(BaseModel):
    """A prediction; fields that do not apply to a task are omitted."""

    text: str = Field(description="the prediction as text")
    value: Any = Field(description="the typed value: text, labels, tags or numbers")
    score: float | None = Field(None, description="log probability, as the search ranks it")
    tokens: list[str] | None = None
    token_logprobs: list[float] | None = Field(
        None,
        description="log probability of each token and EOS; for taggers, probability of each tag",
    )
    nbest: list[NBestItem] | None = Field(None, description="n-best list, if nbest > 1")
    unknown_tokens: list[str] | None = Field(
        None, description="input tokens outside the vocabulary"
    )
    folded: list[str] | None = Field(
        None, description="unknown characters that were read as known ones, as A → a"
    )
    truncated: bool | None = Field(None, description="true: stopped at the maximum length")
    confidence: float | None = None
    probabilities: dict[str, float] | None = None
    alignment: list[list[float]] | None = Field(
        None, description="per token and EOS: attention to each source token"
    )


class PredictResponse(BaseModel):
    """The predictions in the order of the texts."""

    model: str
    predictions: list[PredictionSchema]
    latency_ms: float


class Alternative(BaseModel):
    """A next token and the prediction that continues with it."""

    token: str
    probability: float
    prediction: PredictionSchema


class AlternativesResponse(BaseModel):
    """The most probable next tokens, best first."""

    model: str
    alternatives: list[Alternative]


class ModelInfo(BaseModel):
    """A model and its capabilities."""

    name: str
    task: str
    description: str
    parts: list[dict[str, Any]] = Field(description="the description as structured data")
    parameters: int | None
    search: dict[str, Any]
    settings: dict[str, Any] = Field(description="JSON schema of the search settings")
    capabilities: list[str]
    reads: dict[str, Any] = Field(
        description="kind of the sources, and the MIME types and sizes of files"
    )
    examples: list[str] = Field(description="source texts of the dev set")
    training: dict[str, Any] | None = Field(
        description="data, number of examples, metric, score on the dev set, a sample; if known"
    )
    direction: dict[str, str] = Field(description="text direction of source and target: ltr or rtl")


class ModelsResponse(BaseModel):
    """The served models."""

    models: list[ModelInfo]


class HealthResponse(BaseModel):
    """The status of the server."""

    status: str
    version: str
    models: list[str]
    uptime_seconds: float


class ErrorResponse(BaseModel):
    """An error."""

    error: str
    field: str | None = Field(None, description="path of the invalid field in the request body")
