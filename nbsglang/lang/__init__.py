"""The language: programs whose prompts are asynchronous streams of text and model calls.

From below: `slots` (values to come), `ops` (what a program appends), `execute` (what one stream does, without
threads), `driver` (the thread that feeds the streams), `hub` (waiting on the caller's thread), `run` (what
the streams of one run share), `state` (what a program's author holds), `program` (run and run_batch).

Not here: backends, sessions, the cell form's magics. Nothing in here imports torch or numpy.
"""
