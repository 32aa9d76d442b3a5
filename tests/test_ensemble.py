"""Ensembles: models of different kinds as one."""

import torch
from torch import Tensor

from regard.data.tensors.padded import Padded, pad
from regard.data.tensors.special import BOS, EOS
from regard.inputs.input import InputShape
from regard.models.encoder_decoder import EncoderDecoder, EncoderDecoderOptions
from regard.models.ensemble import Ensemble
from regard.search import Beam, SearchRequest

SOURCES = [[5, 6, 7, EOS], [8, EOS], [6, 6, 5, 8, 7, EOS]]
LIMITS = torch.tensor([7, 4, 9])


def built(kind: str, seed: int) -> EncoderDecoder:
    sizes = {"layers": 2, "width": 8, "dropout": 0.0}
    more = {"heads": 2, "feedforward_width": 12} if kind == "transformer" else {}
    side = {"kind": kind, **sizes, **more}
    tree = {"encoder": side, "decoder": side, "embedding_width": 0}
    torch.manual_seed(seed)
    options = EncoderDecoderOptions.model_validate(tree)
    return options.build(InputShape("text", 9), 9, False).double().eval()


def probabilities(model: EncoderDecoder, source: Padded, tokens: Tensor) -> Tensor:
    """By running the complete prefix again."""
    with torch.no_grad():
        logits, _ = model.step(tokens, model.start(source))
    return logits[:, -1].softmax(-1)


def test_the_mean_of_the_probabilities_step_by_step() -> None:
    models = [built("transformer", 1), built("recurrent", 2), built("transformer", 3)]
    both, source = Ensemble(models), pad(SOURCES)
    tokens = torch.tensor([[BOS, 5, 6], [BOS, 7, 7], [BOS, 8, 5]])
    with torch.inference_mode():
        state = both.start(source)
        for t in range(3):
            logp, state = both.step(tokens[:, t : t + 1], state)
            each = [probabilities(one, source, tokens[:, : t + 1]) for one in models]
            mean = torch.stack(each).mean(0)
            torch.testing.assert_close(logp[:, -1].exp(), mean.to(logp.dtype), atol=1e-5, rtol=1e-4)


def test_a_model_with_itself_is_that_model() -> None:
    model = built("recurrent", 4)
    request = SearchRequest(pad(SOURCES), LIMITS, nbest=3)
    alone = Beam(beam=3).run(model, request)
    twice = Beam(beam=3).run(Ensemble([model, model]), request)
    assert [[h.tokens for h in row] for row in alone] == [[h.tokens for h in row] for row in twice]


def test_the_batch_is_invisible() -> None:
    both = Ensemble([built("transformer", 5), built("recurrent", 6)])
    together = Beam(beam=3).run(both, SearchRequest(pad(SOURCES), LIMITS, nbest=2))
    for row, found in enumerate(together):
        request = SearchRequest(pad([SOURCES[row]]), LIMITS[row : row + 1], nbest=2)
        (alone,) = Beam(beam=3).run(both, request)
        assert [h.tokens for h in alone] == [h.tokens for h in found]
        for one, other in zip(alone, found, strict=True):
            assert abs(one.score - other.score) < 1e-4


def test_an_ensemble_differs_from_its_members() -> None:
    """Otherwise the test above could pass with one model alone."""
    one, other = built("transformer", 5), built("recurrent", 6)
    source, tokens = pad(SOURCES), torch.full((3, 1), BOS)
    mean = probabilities(Ensemble([one, other]), source, tokens)  # type: ignore[arg-type]
    for member in (one, other):
        assert (mean - probabilities(member, source, tokens)).abs().max() > 1e-3
