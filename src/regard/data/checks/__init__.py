"""What is in the data before anything is trained."""
