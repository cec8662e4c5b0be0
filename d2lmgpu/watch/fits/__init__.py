"""``fits``: would a reader's own script fit on a GPU that is not here?"""
