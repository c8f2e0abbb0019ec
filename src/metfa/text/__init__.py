"""Words as features: noise by synonyms, explainers of text models, faithfulness of words."""

from metfa._base.lazy import lazy_names

_HOME = {
    "AnswerScorer": "metfa.text.answers.scorer",
    "AnswerTree": "metfa.text.answers.tree",
    "GradientXInput": "metfa.text.gradient_x_input",
    "LEMNA": "metfa.text.lemna",
    "LIME": "metfa.text.lime",
    "LRP": "metfa.text.lrp",
    "Occlusion": "metfa.text.occlusion",
    "OnlyClose": "metfa.text.only_close",
    "PromptNoise": "metfa.text.answers.prompt_noise",
    "SenseSynonyms": "metfa.text.sense_synonyms",
    "SourceEffects": "metfa.text.answers.source_effects",
    "Synonyms": "metfa.text.synonyms",
    "WordMixture": "metfa.text.lemna",
    "WordScores": "metfa.text.word_metrics",
    "WordSurrogate": "metfa.text.lime",
    "explain_answer": "metfa.text.answers.explain",
    "explain_answer_tree": "metfa.text.answers.explain_tree",
    "explain_text": "metfa.text.explain",
    "fat": "metfa.text.word_metrics",
    "fdt": "metfa.text.word_metrics",
    "from_transformers": "metfa.text.models",
    "generate_answer": "metfa.text.answers.generate",
    "leave_one_out": "metfa.text.answers.beside",
    "load_answer_tree": "metfa.text.answers.tree",
    "load_model": "metfa.text.models",
    "put_beside": "metfa.text.answers.beside",
    "render_html": "metfa.text.rendering",
    "render_terminal": "metfa.text.rendering",
    "save_model": "metfa.text.models",
    "source_relevance": "metfa.text.answers.relevance",
    "st": "metfa.text.word_metrics",
    "words_from_tokens": "metfa.text.subwords",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names("metfa.text", _HOME, "text")
