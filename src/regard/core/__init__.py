"""What everything rests on: errors, options, files, processes and threads."""
