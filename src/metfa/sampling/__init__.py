"""From a request to samples: noisy copies in batches, explained, with addressed random numbers.

How a call goes, each step a file:

- `request`: the arguments of `metfa.explain` as a whole; `run` says where and how; `rows` are the inputs, one by one
  (`rows_in_graph`: in torch's graph), `fitting` what a noise may return for one.
- `streams`: a generator for each input, sample and purpose, by `addresses`.
- `loop`: copies in chunks (`prefetch` draws the noise ahead), explained by the `protocol` of explainers, their
  `outputs` checked; `explainer_attributes` is what explainers say of themselves, `clean_maps` what they say without
  noise.
- `sampler`: one explainer on its inputs, advanced to a number of samples; `first_copy` and `unmoved` look at the noise.
- `store`: where samples go, to memory or a `folder`, where `map_digests` tell what is done.
- `rounds`: how many samples come next; rules look through `what_rules_see`.
- `explain`, `compare` and `contrast` (`paired`, `pair_folder`), `smoothed`, `spread` and `across_models`: what people
  call.
"""
