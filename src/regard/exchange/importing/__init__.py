"""Import of models trained with other toolkits."""
