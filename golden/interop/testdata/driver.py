"""Answers questions of a Go test: one JSON object a line on stdin, one on stdout, in the same order.

A driver imports this module first: it makes torch importable.
"""
import contextlib
import io
import json
import os
import sys
import warnings

import torchstub  # noqa: F401  before any trainer

warnings.simplefilter("ignore")
sys.path.pop(0)  # megatron.py of this folder must not hide the package megatron


def serve(answer):
    """Calls answer(question) for each line and prints the object that it returns.

    An exception or sys.exit becomes {"error": "Type: message"}. What the trainer prints does not disturb the answers:
    its standard output goes to the standard error.
    """
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    out.write(json.dumps({"ready": True}) + "\n")
    out.flush()
    for line in sys.stdin:
        out.write(json.dumps(guarded(answer, json.loads(line)), default=str) + "\n")
        out.flush()


def guarded(answer, question):
    printed, complaints = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complaints):
            return answer(question)
    except SystemExit as e:  # argparse
        lines = complaints.getvalue().strip().splitlines()
        return {"error": "SystemExit: " + (lines[-1] if lines else str(e.code))}
    except Exception as e:
        return {"error": "%s: %s" % (type(e).__name__, e)}
