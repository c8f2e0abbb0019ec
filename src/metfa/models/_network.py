"""Whether a host can be reached: libraries that download weights try for a minute, or wait without end."""

from __future__ import annotations

import importlib
import socket
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["hugging_face_in_time", "is_reachable"]

SECONDS = 3.0  # for an answer of a name server and of the host; slower networks hardly deliver weights


def is_reachable(url: str, seconds: float = SECONDS) -> bool:
    """Whether the host of a URL, or the proxy on the way to it, accepts a connection."""
    host, port = _door(url)
    found: list[bool] = []

    def connect() -> None:
        try:
            socket.create_connection((host, port), timeout=seconds).close()
            found.append(True)
        except OSError:
            found.append(False)

    looking = threading.Thread(target=connect, daemon=True)  # the look-up of a name knows no limit of time
    looking.start()
    looking.join(seconds)
    return found == [True]


def _door(url: str) -> tuple[str, int]:
    """Host and port to which a request for the URL goes."""
    parts = urllib.parse.urlsplit(url)
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy and parts.hostname and not urllib.request.proxy_bypass(parts.hostname):
        parts = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


@contextmanager
def hugging_face_in_time() -> Iterator[None]:
    """Let Hugging Face's hub look into its cache alone, at once, where its host cannot be reached."""
    try:
        constants: Any = importlib.import_module("huggingface_hub.constants")
    except ModuleNotFoundError:  # the library that needs it says so
        yield
        return
    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or not is_reachable(constants.ENDPOINT)
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
