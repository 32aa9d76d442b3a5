"""Why a model is bad, in words: figures of the record, of the data and of probes, then verdicts."""
