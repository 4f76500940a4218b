"""Trimming: a session file made small without a change of what the model sees.

A trim is built like a commit of a database: `outline` reads the file into numbers, `plan` decides
on them alone, `writing` makes the replacement beside the source, `verify` builds what Pi would
show the model from both files, `commit` replaces one by the other and carries what was appended
meanwhile (`late`). `steps` puts these together, in one step or two.
"""
