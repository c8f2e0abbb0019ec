"""One thread a process, and the tier of tests that ask for something large."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when NumPy and torch are loaded; two processes share two cores

# Who asks for one of these fixtures needs what the mark says. `make check` leaves all marks out, see CONTRIBUTING.md.
MARK_OF_FIXTURE = {
    "biased": "slow",
    "browser": "browser",
    "bucket_options": "s3",
    "cluster": "ray",
    "relu_resnet": "weights",
}


def pytest_collection_modifyitems(items):
    for item in items:
        for fixture in MARK_OF_FIXTURE.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARK_OF_FIXTURE[fixture])
