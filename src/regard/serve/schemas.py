"""The shapes of requests and answers, as OpenAPI describes them."""

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


def _whole(value: Any) -> Any:
    """5.0 is as good as 5, as JSON has it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


LARGE = 2**63
Count = Annotated[int, Strict(), BeforeValidator(_whole)]
Whole = Annotated[int, Strict(), Field(ge=-LARGE, lt=LARGE)]
Real = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Value = StrictBool | Whole | Real | StrictStr | None
# Of a long list of wrong things only the first is told: a million errors take many seconds.
FIRST: Any = Field(fail_fast=True)


class Body(BaseModel):
    """What a client sends. No other fields, no conversions."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class ModelRequest(Body):
    """A request."""

    model: StrictStr | None = Field(
        None, description="the model's name; the first one if there is none"
    )
    search: dict[str, Value] = Field(
        default_factory=dict, description="settings of the search; GET /models says which"
    )


class WishBody(Body):
    """What is asked of one answer."""

    prefix: StrictStr = Field("", description="how the answer begins")
    must: list[StrictStr] = Field(default_factory=list, description="words that must be in it")
    ban: list[StrictStr] = Field(default_factory=list, description="words that may not be in it")


class PredictBody(ModelRequest):
    """Texts to answer."""

    texts: list[StrictStr] = Field(
        min_length=1, description="as in the lines of a file", examples=[["attention"]]
    )
    nbest: Count = Field(1, ge=1, description="answers to each text")
    requests: list[WishBody] | None = Field(None, description="for each text what is asked of it")
    align: StrictBool = Field(False, description="with what each token looked at")


class StreamBody(ModelRequest):
    """A text to answer while one looks on."""

    text: StrictStr = Field(examples=["attention"])
    request: WishBody | None = None


class InspectBody(ModelRequest):
    """A text to look into."""

    text: StrictStr = Field(examples=["attention"])
    target: StrictStr | None = Field(
        None, description="an answer to explain instead of the model's"
    )


class AlternativesBody(ModelRequest):
    """A text whose answer may go on in other ways behind a beginning."""

    text: StrictStr = Field(examples=["attention"])
    request: WishBody = Field(default_factory=WishBody)
    count: Count = Field(5, ge=1, le=100, description="ways to go on")


def limited_bodies(
    limits: ServeSettings, models: list[str], search: dict[str, Any]
) -> dict[str, type[ModelRequest]]:
    """Return the bodies by path, with the limits, the models and the settings of this server."""
    text: Any = Annotated[StrictStr, Field(max_length=limits.max_chars)]
    word: Any = Annotated[text, Field(min_length=1)]
    words: Any = Annotated[list[word], FIRST, Field(max_length=limits.max_constraints)]
    texts: Any = Annotated[list[text], FIRST, Field(max_length=limits.max_texts)]
    wish: Any = _limited(WishBody, prefix=text, must=words, ban=words)
    names = {"anyOf": [{"enum": models}, {"type": "null"}]}
    asked = {
        "model": Annotated[StrictStr | None, WithJsonSchema(names)],
        "search": Annotated[dict[str, Value], WithJsonSchema(search)],
        "text": text,
    }
    several = {"type": "integer", "minimum": 1, "maximum": limits.max_nbest}
    nbest: Any = Annotated[Count, WithJsonSchema(several)]
    requests: Any = Annotated[list[wish], FIRST] | None
    return {
        "/predict": _limited(PredictBody, **asked, texts=texts, nbest=nbest, requests=requests),
        "/stream": _limited(StreamBody, **asked, request=wish | None),
        "/inspect": _limited(InspectBody, **asked, target=text | None),
        "/alternatives": _limited(AlternativesBody, **asked, request=wish),
    }


def _limited(shape: type[Body], **types: Any) -> Any:
    """Return a shape whose fields have these types instead, and are else as they were."""
    known = shape.model_fields
    fields: Any = {name: (kind, known[name]) for name, kind in types.items() if name in known}
    return create_model(shape.__name__, __base__=shape, __doc__=shape.__doc__, **fields)


class Other(BaseModel):
    """One of the n best answers."""

    text: str
    score: float | None = None


class Answer(BaseModel):
    """An answer; what does not apply to a task is absent."""

    text: str = Field(description="as it would be printed")
    value: Any = Field(description="as it is: a text, labels, tags, numbers")
    score: float | None = Field(None, description="log probability, as the search ranks")
    tokens: list[str] | None = None
    token_logprobs: list[float] | None = Field(
        None, description="log probabilities, that of the end last; of a tagger probabilities"
    )
    nbest: list[Other] | None = Field(None, description="with nbest > 1: all of them")
    unknown_tokens: list[str] | None = Field(None, description="tokens that training never saw")
    truncated: bool | None = Field(None, description="true: ended at its limit")
    confidence: float | None = None
    probabilities: dict[str, float] | None = None
    alignment: list[list[float]] | None = Field(
        None, description="for each token and the end, its attention to each source token"
    )


class PredictAnswer(BaseModel):
    """The answers in the order of the texts."""

    model: str
    answers: list[Answer]
    milliseconds: float


class Alternative(BaseModel):
    """A way to go on."""

    token: str
    p: float
    answer: Answer


class AlternativesAnswer(BaseModel):
    """Ways to go on, the most probable first."""

    model: str
    alternatives: list[Alternative]


class ModelFacts(BaseModel):
    """A model, and what can be asked of it."""

    name: str
    task: str
    description: str
    parts: list[dict[str, Any]] = Field(description="what the description says, word by word")
    parameters: int | None
    search: dict[str, Any]
    settings: dict[str, Any] = Field(description="JSON schema of the search")
    can: list[str]
    example: str | None
    direction: dict[str, str] = Field(description="ltr or rtl, of source and target")


class Models(BaseModel):
    """The models that answer."""

    models: list[ModelFacts]


class Health(BaseModel):
    """That the server is there."""

    status: str
    version: str
    models: list[str]
    seconds: float


class Problem(BaseModel):
    """Why a request was not answered."""

    error: str
    at: str | None = Field(None, description="the place in the body that is to blame")
