"""One server that speaks S3, for all tests of a process."""

import pytest


@pytest.fixture(scope="session")
def bucket_options():
    """Store options that lead to the server, which listens on the loopback interface alone."""
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        running.start()
        host, port = running.get_host_and_port()
        yield {"endpoint_url": f"http://{host}:{port}", "key": "k", "secret": "s"}
        running.stop()
