"""Special token ids, the same in every vocabulary."""

PAD, UNK, BOS, EOS, MASK = range(5)
SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>", "<mask>")

BLANK = PAD  # frames without a token, in CTC: no output ever contains padding
