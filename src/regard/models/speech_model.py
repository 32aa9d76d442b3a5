"""The base class of models that write frames: an encoder of texts, with a vector per speaker."""

from torch import nn

from regard.data.tensors.padded import Padded
from regard.inputs.frontend import Embedding, Frontend


class SpeechModel(nn.Module):
    """An encoder whose outputs also know the speaker.

    speakers: a vector per speaker, which is added to all outputs of the encoder. The first token of
    each source then is the index of the speaker.
    """

    def __init__(self, frontend: Frontend, encoder: nn.Module, speakers: Embedding | None) -> None:
        super().__init__()
        self.frontend, self.encoder, self.speakers = frontend, encoder, speakers

    def encode(self, source: Padded) -> Padded:
        """Return the outputs (B, S, D) of the encoder."""
        if self.speakers is None:
            encoded: Padded = self.encoder(self.frontend(source))
            return encoded
        text = Padded(source.data[:, 1:], source.mask[:, 1:])
        found: Padded = self.encoder(self.frontend(text))
        voice = self.speakers(source.data[:, :1])  # (B, 1, D)
        summary = None if found.summary is None else found.summary + voice[:, 0]
        return Padded(found.data + voice, found.mask, summary=summary)
