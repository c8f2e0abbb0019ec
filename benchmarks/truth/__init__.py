"""How often are the marks right? Tasks whose used features are known, and the error rates of marks on them.

    python -m benchmarks.truth                                  the quick tier anew, beside the published figures
    python -m benchmarks.truth --tier quick --out FOLDER        tables of a tier; goes on from the units in FOLDER
    python -m benchmarks.truth.photographs --data PHOTOGRAPHS --out FOLDER
    python -m benchmarks.truth.page                             the parts of the page in the documentation

`tasks` lists what is explained, `explainers` what explains, `rules` what decides: each grows by a line.
"""
