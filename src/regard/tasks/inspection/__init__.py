"""How each task runs the model for an inspection: repeatable forced passes over one source."""
