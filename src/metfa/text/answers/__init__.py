"""Which sources of a prompt raised the score of an answer.

A scorer says how well a model likes an answer: `scorer` for models of Hugging Face (its parts are `prompts`,
`_continuations` and `_spans`), or a function of the caller's. `source_effects` explains it: random halves of the
sources (`_sources`), less a guess (`_control`). `explain` and `explain_tree` ask all at once (`_asked`, `_store`,
`_under_noise`), and `tree` holds the levels. `findings` and `answered` say what was found, and `views` show it.
`beside` and `relevance` are other answers to the same question, `prompt_noise` is noise on prompts, and `generate`
makes an answer.
"""
