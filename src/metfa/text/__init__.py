"""Words as features: noise by synonyms, explainers of text models, faithfulness of words."""

from metfa._base.lazy import lazy_names

_HOME = {
    "AnswerScorer": "metfa.text.answer_scorer",
    "AnswerTree": "metfa.text.answer_tree",
    "GradientXInput": "metfa.text.gradient_x_input",
    "LEMNA": "metfa.text.lemna",
    "LIME": "metfa.text.lime",
    "LRP": "metfa.text.lrp",
    "Occlusion": "metfa.text.occlusion",
    "OnlyClose": "metfa.text.only_close",
    "PromptNoise": "metfa.text.prompt_noise",
    "SenseSynonyms": "metfa.text.sense_synonyms",
    "SourceEffects": "metfa.text.source_effects",
    "Synonyms": "metfa.text.synonyms",
    "WordMixture": "metfa.text.lemna",
    "WordScores": "metfa.text.word_metrics",
    "WordSurrogate": "metfa.text.lime",
    "explain_answer": "metfa.text.answers",
    "explain_answer_tree": "metfa.text.answer_levels",
    "explain_text": "metfa.text.explain",
    "fat": "metfa.text.word_metrics",
    "fdt": "metfa.text.word_metrics",
    "from_transformers": "metfa.text.models",
    "generate_answer": "metfa.text.generate",
    "leave_one_out": "metfa.text.beside",
    "load_answer_tree": "metfa.text.answer_tree",
    "load_model": "metfa.text.models",
    "put_beside": "metfa.text.beside",
    "render_html": "metfa.text.rendering",
    "render_terminal": "metfa.text.rendering",
    "save_model": "metfa.text.models",
    "source_relevance": "metfa.text.relevance",
    "st": "metfa.text.word_metrics",
    "words_from_tokens": "metfa.text.subwords",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names("metfa.text", _HOME, "text")
