"""The output of a model next to a given target: where its own prefix differs from the true one.

T target tokens with EOS, V vocabulary.
"""

from collections.abc import Sequence

import torch

from regard.data.tensors.padded import Padded, shifted
from regard.data.tensors.special import EOS
from regard.tasks.inspection.forced_pass import InspectionRequest, OwnStep


@torch.no_grad()
def own_steps(
    request: InspectionRequest, source: Padded, target: Sequence[int], own: Sequence[int]
) -> tuple[OwnStep, ...]:
    """Return the model's own token at each target position, and what it makes of the target.

    The probability of the target token there is that after the model's own prefix. It equals the
    one of forced decoding up to the first difference. target, own: token ids without EOS.
    """
    names = request.task.target.name
    given, written = [*target, EOS], [*own, EOS]
    count = min(len(given), len(written))
    inputs = shifted(torch.tensor([written[:count]], device=request.device))
    logits, _ = request.model.step(inputs, request.model.start(source))
    p = logits[0].float().softmax(-1).cpu()  # (T, V)
    steps = [
        OwnStep(names(token), float(p[t, true]))
        for t, (token, true) in enumerate(zip(written, given, strict=False))
    ]
    return (*steps, *[OwnStep("", None)] * (len(given) - count))
