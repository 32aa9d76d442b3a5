"""Special token ids, the same in every vocabulary."""

PAD, UNK, BOS, EOS, MASK = range(5)
SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>", "<mask>")
