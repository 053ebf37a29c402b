"""Files that are whole or not there: models, single outputs, folders of outputs."""
